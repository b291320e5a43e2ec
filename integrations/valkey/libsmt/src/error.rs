// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors for C: a code that keeps its number, and a text.

use smt_transport::{OpenError, Refused};

/// Codes of `smt.h`.
pub(crate) const OK: i32 = 0;
const INVALID: i32 = 1;
const CREDENTIALS: i32 = 2;
const OPEN: i32 = 3;
const BLOCKED: i32 = 4;
const NO_SESSION: i32 = 5;
const NO_RPC: i32 = 6;
const TOO_LARGE: i32 = 7;
const USED_UP: i32 = 8;
const SYSTEM: i32 = 9;

/// An `smt_error`.
#[repr(C)]
pub(crate) struct ErrorForC {
    /// The code.
    pub(crate) code: i32,
    /// UTF-8 that ends with a zero.
    pub(crate) text: [u8; TEXT_MAX],
}

/// An error on its way to C.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Failure {
    /// The caller has given something that cannot be used.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self { code: INVALID, text: format!("caller: {}", text.into()) }
    }

    /// A certificate, key or authority cannot be used.
    pub(crate) fn credentials(error: &impl std::fmt::Display) -> Self {
        Self { code: CREDENTIALS, text: format!("caller: {error}") }
    }

    /// A system call has failed.
    pub(crate) fn system(error: &std::io::Error) -> Self {
        Self { code: SYSTEM, text: format!("environment: {error}") }
    }

    /// The error for C, with as much of its text as there is room for.
    pub(crate) fn for_c(&self) -> ErrorForC {
        let mut length = self.text.len().min(TEXT_MAX - 1);
        while !self.text.is_char_boundary(length) {
            length -= 1;
        }
        let mut text = [0; TEXT_MAX];
        text[..length].copy_from_slice(&self.text.as_bytes()[..length]);
        ErrorForC { code: self.code, text }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self { code: OPEN, text: error.to_string() }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::Blocked => BLOCKED,
            Refused::NoSession => NO_SESSION,
            Refused::TooLarge { .. } => TOO_LARGE,
            Refused::UsedUp | Refused::Expired => USED_UP,
            // Others than these do not come of whole replies and one-way messages.
            _ => NO_RPC,
        };
        Self { code, text: refused.to_string() }
    }
}

/// Bytes of a text in the header, with the zero at its end.
pub(crate) const TEXT_MAX: usize = 508;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_ends_at_a_character() {
        let out = Failure::invalid("ü".repeat(TEXT_MAX)).for_c();
        let end = out.text.iter().position(|byte| *byte == 0);
        let text = std::str::from_utf8(&out.text[..end.unwrap_or(0)]);
        assert!(text.is_ok_and(|text| text.len() > TEXT_MAX - 4 && text.ends_with('ü')));
        assert_eq!(out.code, 1);
    }

    #[test]
    fn refusals_have_the_codes_of_the_header() {
        let too_large = Refused::TooLarge { length: 2, limit: 1 };
        let codes =
            [Refused::Blocked, Refused::NoSession, Refused::NoRpc, too_large, Refused::UsedUp];
        let codes = codes.map(|refused| Failure::from(refused).code);
        assert_eq!(codes, [4, 5, 6, 7, 8]);
    }
}
