// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TUN device (Linux, `Documentation/networking/tuntap.rst`): packets that the host routes into
//! it are read here, and packets that are written here arrive at the host.
//!
//! 1. Opening makes the device with so many queues; it is gone with the last of them.
//! 2. Each packet has a virtio-net header before it (virtio 1.2 §5.1.6), by which the host hands
//!    over super-packets and takes them.
//! 3. Reading and writing never wait; a queue is a descriptor that can be polled.
//!
//! Not here: addresses, routes and the MTU of the device, and the meaning of the virtio-net header.

use libc::{
    Ioctl, TUNSETIFF, TUNSETOFFLOAD, TUNSETVNETHDRSZ, TUNSETVNETLE, c_int, c_short, c_ulong,
};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

/// Bytes of the virtio-net header before each packet: the kind without a number of buffers.
pub const TUN_HEADER_LEN: usize = 10;

/// The work that the host may leave to the reader of a TUN device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TunOffloads {
    /// Transport checksums are left out, and the header tells where they belong.
    pub checksums: bool,
    /// Super-packets of TCP, which need `checksums` too.
    pub tcp_segmentation: bool,
    /// Super-packets of UDP (Linux 6.2), which need `checksums` too.
    pub udp_segmentation: bool,
}

/// Why a TUN device is not opened.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The host has no TUN devices.
    #[error("environment: /dev/net/tun is not there: load the kernel's module tun")]
    Missing(#[source] io::Error),
    /// The process has no right to make one.
    #[error("environment: no right to make the TUN device {name}: it takes CAP_NET_ADMIN")]
    Forbidden {
        /// The name that was asked for.
        name: String,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// Another process has the device, or the name is another device's.
    #[error("caller: the device {name} is in use")]
    InUse {
        /// The name that was asked for.
        name: String,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// No device can have this name.
    #[error("caller: {0:?} is no name of a device: 1 to 15 bytes without / and spaces")]
    Name(String),
    /// The host refuses something else.
    #[error("environment: the TUN device cannot {what}")]
    Other {
        /// The step that failed.
        what: &'static str,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
}

/// One queue of a TUN device.
#[derive(Debug)]
pub struct TunQueue {
    file: File,
    takes_udp_segments: bool,
}

impl TunQueue {
    /// Makes a device of so many queues, at least one.
    ///
    /// # Errors
    /// See [`TunError`].
    pub fn open(name: &str, queues: usize, offloads: TunOffloads) -> Result<Vec<Self>, TunError> {
        let mut request = one_queue(name)?;
        if queues > 1 {
            request.flags |= libc::IFF_MULTI_QUEUE as c_short;
        }
        (0..queues.max(1)).map(|_| Self::open_one(name, &mut request, offloads)).collect()
    }

    /// Opens a device of one queue, which may be one that outlives its processes
    /// (`ip tuntap add mode tun`): its owner needs no right to open it.
    ///
    /// # Errors
    /// See [`TunError`].
    pub fn open_one_of(name: &str, offloads: TunOffloads) -> Result<Self, TunError> {
        Self::open_one(name, &mut one_queue(name)?, offloads)
    }

    /// Bytes of the longest packet of the device with this name.
    ///
    /// # Errors
    /// There is no such device.
    pub fn mtu(name: &str) -> Result<usize, TunError> {
        // Interfaces are asked for through a socket, of any kind.
        let asked = UnixDatagram::unbound().and_then(|socket| {
            let mut request = interface_request(name).map_err(io::Error::other)?;
            // SAFETY: the request is a whole `ifreq` of this thread's, which the kernel reads and
            // writes.
            outcome_of(unsafe {
                let request = std::ptr::from_mut(&mut request);
                libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, request)
            })?;
            Ok(request.mtu())
        });
        asked.map_err(other("tell its MTU"))
    }

    fn open_one(
        name: &str,
        request: &mut InterfaceRequest,
        offloads: TunOffloads,
    ) -> Result<Self, TunError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = options.open(PATH).map_err(|reason| match reason.kind() {
            io::ErrorKind::NotFound => TunError::Missing(reason),
            _ => refused(name, reason),
        })?;
        set_interface(&file, request).map_err(|reason| refused(name, reason))?;
        let length = TUN_HEADER_LEN as c_int;
        set_integer(&file, TUNSETVNETHDRSZ, length).map_err(other("set its header's length"))?;
        set_integer(&file, TUNSETVNETLE, 1).map_err(other("set its header's byte order"))?;
        let takes_udp_segments = set_offloads(&file, offloads)?;
        Ok(Self { file, takes_udp_segments })
    }

    /// Whether the host takes super-packets of UDP (Linux since 6.2). Others refuse them.
    #[must_use]
    pub const fn takes_udp_segments(&self) -> bool {
        self.takes_udp_segments
    }

    /// Reads a virtio-net header and the packet behind it. Nothing if no packet waits.
    ///
    /// # Errors
    /// The device is down or gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.file).read(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes a packet, which the host then gets.
    ///
    /// # Errors
    /// The host refuses the packet, or the device is down or gone.
    pub fn write(&self, header: &[u8; TUN_HEADER_LEN], packet: &[u8]) -> io::Result<()> {
        let parts = [IoSlice::new(header), IoSlice::new(packet)];
        loop {
            match (&self.file).write_vectored(&parts) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for TunQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Sets the offloads, and tells whether the kernel knows those of UDP, which are left out if not.
fn set_offloads(file: &File, offloads: TunOffloads) -> Result<bool, TunError> {
    let with_udp = libc::TUN_F_CSUM | libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let knows_udp = set_value(file, TUNSETOFFLOAD, c_ulong::from(with_udp)).is_ok();
    let mut flags = 0;
    if offloads.checksums {
        flags |= libc::TUN_F_CSUM;
        if offloads.tcp_segmentation {
            flags |= libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        }
    }
    if offloads.checksums && offloads.udp_segmentation && knows_udp {
        flags |= libc::TUN_F_USO4 | libc::TUN_F_USO6;
    }
    let set = set_value(file, TUNSETOFFLOAD, c_ulong::from(flags));
    set.map_err(other("set its offloads"))?;
    Ok(knows_udp)
}

fn refused(name: &str, reason: io::Error) -> TunError {
    let name = name.to_owned();
    match reason.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => TunError::Forbidden { name, reason },
        Some(libc::EBUSY | libc::EINVAL | libc::EEXIST) => TunError::InUse { name, reason },
        _ => other("be made")(reason),
    }
}

fn other(what: &'static str) -> impl FnOnce(io::Error) -> TunError {
    move |reason| TunError::Other { what, reason }
}

/// `struct ifreq` with the one field that TUNSETIFF reads.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: c_short,
    rest: [u8; 22],
}

impl InterfaceRequest {
    /// The integer that SIOCGIFMTU leaves in the place of the flags and of two bytes behind them.
    fn mtu(&self) -> usize {
        let [a, b] = self.flags.to_ne_bytes();
        let mtu = c_int::from_ne_bytes([a, b, self.rest[0], self.rest[1]]);
        usize::try_from(mtu).unwrap_or(0)
    }
}

/// A request for a device of one queue.
fn one_queue(name: &str) -> Result<InterfaceRequest, TunError> {
    let mut request = interface_request(name)?;
    request.flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as c_short;
    Ok(request)
}

fn interface_request(name: &str) -> Result<InterfaceRequest, TunError> {
    let is_name = (1..libc::IFNAMSIZ).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte))
        && !matches!(name, "." | "..");
    if !is_name {
        return Err(TunError::Name(name.to_owned()));
    }
    let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], flags: 0, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    Ok(request)
}

fn set_interface(file: &File, request: &mut InterfaceRequest) -> io::Result<()> {
    // SAFETY: the request is a whole `ifreq` of this thread's, which the kernel reads and writes.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, std::ptr::from_mut(request)) };
    outcome_of(outcome)
}

fn set_integer(file: &File, option: Ioctl, value: c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one integer, which lives across the call.
    outcome_of(unsafe { libc::ioctl(file.as_raw_fd(), option, &raw const value) })
}

fn set_value(file: &File, option: Ioctl, value: c_ulong) -> io::Result<()> {
    // SAFETY: the argument is a number, and no pointer.
    outcome_of(unsafe { libc::ioctl(file.as_raw_fd(), option, value) })
}

fn outcome_of(outcome: c_int) -> io::Result<()> {
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

const PATH: &str = "/dev/net/tun";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_device_can_have_is_refused() {
        for name in ["", "sixteen-bytes-16", "a/b", "a b", ".", ".."] {
            let refused = interface_request(name).map(|request| request.name);
            assert!(matches!(refused, Err(TunError::Name(_))), "{name:?}");
        }
        let request = interface_request("fifteen-bytes15").unwrap();
        assert_eq!(request.name[15], 0, "the name has an end");
    }

    #[test]
    fn a_request_is_as_long_as_the_kernels() {
        assert_eq!(size_of::<InterfaceRequest>(), size_of::<libc::ifreq>());
    }

    #[test]
    fn each_refusal_says_whose_fault_it_is() {
        let of = |code| refused("esp0", io::Error::from_raw_os_error(code)).to_string();
        assert!(of(libc::EPERM).starts_with("environment: no right to make the TUN device esp0"));
        assert!(of(libc::EBUSY).starts_with("caller: the device esp0 is in use"));
        assert!(of(libc::EIO).starts_with("environment: the TUN device cannot be made"));
    }
}
