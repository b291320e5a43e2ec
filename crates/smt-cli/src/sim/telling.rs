// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines written while cases are played. Their reader may close the pipe before the cases are over:
//! this changes neither the search nor the exit code.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;
use crate::standard_output::standard_output;

/// Tells lines on standard output, as long as a process reads them.
#[derive(Debug, Default)]
pub(super) struct Telling {
    is_reader_gone: bool,
}

impl Telling {
    /// Tells something.
    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.say_to(&mut standard_output(), text)
    }

    /// Whether the output has no reader any more.
    pub(super) fn is_reader_gone(&self) -> bool {
        self.is_reader_gone
    }

    fn say_to(&mut self, out: &mut dyn Write, text: &str) -> Result<(), Failure> {
        if self.is_reader_gone {
            return Ok(());
        }
        match writeln!(out, "{text}") {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_reader_gone = true;
                Ok(())
            }
            told => Ok(told?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_has_had_enough_is_no_failure_and_a_full_disk_is() {
        let mut telling = Telling::default();
        let mut out = Vec::new();
        telling.say_to(&mut out, "one").unwrap();
        assert_eq!(out, b"one\n");
        let full = &mut Broken(ErrorKind::StorageFull);
        assert!(telling.say_to(full, "two").is_err() && !telling.is_reader_gone());
        let gone = &mut Broken(ErrorKind::BrokenPipe);
        assert!(telling.say_to(gone, "three").is_ok() && telling.is_reader_gone());
    }
}
