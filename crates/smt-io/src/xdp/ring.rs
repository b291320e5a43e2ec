// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings of descriptors that are shared with the kernel: one side puts them in, the other takes
//! them out (`AF_XDP`, Documentation/networking/af_xdp.rst of Linux).

use super::mapping::Mapping;
use libc::{off_t, xdp_ring_offset};
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// A descriptor of a ring: any bits are one.
///
/// # Safety
/// The type must be one that `AF_XDP` has in a ring, and every bit pattern must be a value of it.
pub(super) unsafe trait Descriptor: Copy {}

// SAFETY: fill and completion rings have addresses.
unsafe impl Descriptor for u64 {}
// SAFETY: receive and transmit rings have these, which are integers alone.
unsafe impl Descriptor for libc::xdp_desc {}

/// A ring, seen from the side of the process. It is used as producer or as consumer, and never as
/// both.
#[derive(Debug)]
pub(super) struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    descriptors: usize,
    capacity: u32,
    of: PhantomData<T>,
}

impl<T: Descriptor> Ring<T> {
    /// The ring of `capacity` descriptors, a power of two, at `page` of a socket.
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        offsets: xdp_ring_offset,
        capacity: u32,
        page: off_t,
    ) -> io::Result<Self> {
        let [producer, consumer, descriptors] =
            [offsets.producer, offsets.consumer, offsets.desc].map(|offset| offset as usize);
        let length = descriptors + capacity as usize * size_of::<T>();
        let fits = producer.max(consumer) + size_of::<u32>() <= length
            && [producer, consumer].iter().all(|place| place % 4 == 0)
            && descriptors % align_of::<T>() == 0;
        if !fits {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self {
            mapping: Mapping::of(socket, length, page)?,
            producer,
            consumer,
            descriptors,
            capacity,
            of: PhantomData,
        })
    }

    fn counter(&self, place: usize) -> &AtomicU32 {
        // SAFETY: the place is in the mapping and aligned (`map`), the mapping begins at a page and
        // lives as long as `self`, and both sides access the counter atomically.
        unsafe { &*self.mapping.start().add(place).cast::<AtomicU32>().as_ptr() }
    }

    fn slot(&self, number: u32) -> *mut T {
        let place = self.descriptors + (number & (self.capacity - 1)) as usize * size_of::<T>();
        // SAFETY: the masked number is below the capacity, for which the mapping has room.
        unsafe { self.mapping.start().add(place) }.cast::<T>().as_ptr()
    }

    /// How many descriptors are in it.
    pub(super) fn len(&self) -> u32 {
        let producer = self.counter(self.producer).load(Ordering::Acquire);
        producer.wrapping_sub(self.counter(self.consumer).load(Ordering::Acquire))
    }

    /// Puts one in, as producer; whether there was room.
    pub(super) fn push(&mut self, descriptor: T) -> bool {
        let producer = self.counter(self.producer).load(Ordering::Relaxed);
        let consumer = self.counter(self.consumer).load(Ordering::Acquire);
        if producer.wrapping_sub(consumer) >= self.capacity {
            return false;
        }
        // SAFETY: the slot is in the mapping and aligned, and the kernel does not look at it before
        // the counter is past it.
        unsafe { self.slot(producer).write(descriptor) };
        let next = producer.wrapping_add(1);
        self.counter(self.producer).store(next, Ordering::Release);
        true
    }

    /// Takes one out, as consumer.
    pub(super) fn pop(&mut self) -> Option<T> {
        let consumer = self.counter(self.consumer).load(Ordering::Relaxed);
        let producer = self.counter(self.producer).load(Ordering::Acquire);
        if producer == consumer {
            return None;
        }
        // SAFETY: the slot is in the mapping and aligned, any bits are a descriptor, and the kernel
        // does not write to it before the counter is past it.
        let descriptor = unsafe { self.slot(consumer).read() };
        let next = consumer.wrapping_add(1);
        self.counter(self.consumer).store(next, Ordering::Release);
        Some(descriptor)
    }
}
