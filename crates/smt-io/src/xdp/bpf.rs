// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls for XDP programs: a map of sockets, a program, and its place at an interface.
//!
//! Everything goes with its descriptor: a program that is attached by a link is detached when the
//! process ends, however it ends.

use super::program::Instruction;
use libc::{c_int, c_long};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// A map from queues of an interface to the sockets that get their packets.
#[derive(Debug)]
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    /// A map of this many queues.
    pub(super) fn create(queues: u32) -> io::Result<Self> {
        let made = call(
            MAP_CREATE,
            &MapCreate {
                map_type: MAP_TYPE_XSKMAP,
                key_size: size_of::<u32>() as u32,
                value_size: size_of::<u32>() as u32,
                max_entries: queues,
                map_flags: 0,
            },
        )?;
        Ok(Self(owned(made)))
    }

    /// Gives the packets of a queue to a socket.
    pub(super) fn insert(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value = socket.as_raw_fd();
        let set = call(
            MAP_UPDATE_ELEM,
            &MapUpdate {
                map_fd: self.0.as_raw_fd() as u32,
                padding: 0,
                key: (&raw const queue) as u64,
                value: (&raw const value) as u64,
                flags: 0,
            },
        );
        set.map(drop)
    }

    /// As the program names it.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A program at an interface, until it is dropped.
#[derive(Debug)]
pub(super) struct Attachment {
    _link: OwnedFd,
}

impl Attachment {
    /// Loads a program, and lets it see each packet that an interface receives, after the driver
    /// (generic XDP).
    pub(super) fn attach(program: &[Instruction], interface: u32) -> io::Result<Self> {
        let program = load(program)?;
        let link = call(
            LINK_CREATE,
            &LinkCreate {
                program_fd: program.as_raw_fd() as u32,
                interface,
                attach_type: ATTACH_TYPE_XDP,
                flags: FLAGS_SKB_MODE,
            },
        )?;
        // The link keeps the program.
        Ok(Self { _link: owned(link) })
    }
}

/// Loads a program, which the kernel checks.
pub(super) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    const LICENSE: &CStr = c"MIT or Apache-2.0";
    let loaded = call(
        PROG_LOAD,
        &ProgramLoad {
            program_type: PROG_TYPE_XDP,
            instruction_count: program.len() as u32,
            instructions: program.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log_buffer: 0,
        },
    )?;
    Ok(owned(loaded))
}

/// The attributes of a call, as `linux/bpf.h` has them in the union `bpf_attr`.
///
/// # Safety
/// The layout must be that of the union's member for the call, and every address in it must be
/// that of live memory as long as the call reads.
unsafe trait Attributes {}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buffer: u64,
}

#[repr(C)]
struct LinkCreate {
    program_fd: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

// SAFETY: the layout is that of `BPF_MAP_CREATE`; there is no address.
unsafe impl Attributes for MapCreate {}
// SAFETY: the layout is that of `BPF_MAP_UPDATE_ELEM`; `SocketMap::insert`, which alone makes it,
// has key and value as locals.
unsafe impl Attributes for MapUpdate {}
// SAFETY: the layout is that of `BPF_PROG_LOAD`; `load`, which alone makes it, borrows the
// instructions, and the license is static.
unsafe impl Attributes for ProgramLoad {}
// SAFETY: the layout is that of `BPF_LINK_CREATE`; there is no address.
unsafe impl Attributes for LinkCreate {}

fn call<T: Attributes>(command: c_int, attributes: &T) -> io::Result<c_long> {
    // SAFETY: the attributes are live, have the layout that the command reads, and their size is
    // given; the kernel takes what follows in the union as zeros.
    let outcome = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    };
    match outcome {
        ..0 => Err(io::Error::last_os_error()),
        outcome => Ok(outcome),
    }
}

fn owned(descriptor: c_long) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for the caller alone.
    unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) }
}

const MAP_CREATE: c_int = 0;
const MAP_UPDATE_ELEM: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
const FLAGS_SKB_MODE: u32 = 1 << 1;
