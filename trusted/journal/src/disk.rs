// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The disk of a log.

use std::io;

/// A file on some disk. Nothing that was written is sure to be there before [`Disk::sync`] returns.
pub trait Disk {
    /// Bytes of the file.
    ///
    /// # Errors
    /// Those of the disk.
    fn length(&self) -> io::Result<u64>;

    /// Reads bytes that are there.
    ///
    /// # Errors
    /// Those of the disk.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes bytes.
    ///
    /// # Errors
    /// Those of the disk.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file off.
    ///
    /// # Errors
    /// Those of the disk.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Makes all of that durable.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync(&mut self) -> io::Result<()>;
}
