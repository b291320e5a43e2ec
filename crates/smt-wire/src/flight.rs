// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The body of a flight: parameters, then key exchange bytes (SPEC §6.1).
//!
//! Whole flights only; their fragments are in `handshake.rs`, and the meaning of the parameters is
//! in `params.rs`. Only TLS knows the meaning of the key exchange bytes.

use crate::error::ParseError;
use crate::field::{put, u16_at};

/// A flight's body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FlightBody<'a> {
    /// The sender's parameters in flights 1 and 2, else empty.
    pub params: &'a [u8],
    /// The bytes that the side's TLS has to send; empty with registered keys.
    pub key_exchange: &'a [u8],
}

impl<'a> FlightBody<'a> {
    /// Parses a whole flight.
    ///
    /// # Errors
    /// `Malformed` if the parameters' length does not fit: an error of the attempt.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
            return Err(ParseError::Malformed("flight without its parameters' length"));
        };
        match rest.split_at_checked(usize::from(u16_at(length, 0..2))) {
            Some((params, key_exchange)) => Ok(Self { params, key_exchange }),
            None => Err(ParseError::Malformed("flight with parameters past its end")),
        }
    }
}

impl FlightBody<'_> {
    /// Bytes of the flight.
    pub fn flight_len(&self) -> usize {
        2 + self.params.len() + self.key_exchange.len()
    }

    /// Writes the flight to the front of `out`; returns its length.
    ///
    /// # Panics
    /// If the parameters are longer than 65,535 bytes or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let params_len = u16::try_from(self.params.len()).expect("params are at most 65,535 bytes");
        let params_end = 2 + self.params.len();
        put(out, 0..2, &params_len.to_be_bytes());
        put(out, 2..params_end, self.params);
        put(out, params_end..self.flight_len(), self.key_exchange);
        self.flight_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: FlightBody<'_> = FlightBody { params: &[7, 8, 9], key_exchange: &[1, 2] };
    const BYTES: [u8; 7] = [0, 3, 7, 8, 9, 1, 2];

    mod parse {
        use super::*;

        #[test]
        fn splits_at_the_stated_length() {
            assert_eq!(FlightBody::parse(&BYTES), Ok(FLIGHT));
        }

        #[test]
        fn empty_flight_is_two_bytes() {
            assert_eq!(
                FlightBody::parse(&[0, 0]),
                Ok(FlightBody { params: &[], key_exchange: &[] })
            );
        }

        #[test]
        fn cut_parameters_are_refused() {
            for length in 0..5 {
                assert!(FlightBody::parse(&BYTES[..length]).is_err(), "{length} bytes");
            }
        }
    }

    mod emit {
        use super::*;

        #[test]
        fn writes_what_parse_reads() {
            let mut out = [0xFF; 8];
            assert_eq!(FLIGHT.emit(&mut out), 7);
            assert_eq!(out[..7], BYTES);
            assert_eq!(out[7], 0xFF);
        }
    }
}
