// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts about an error by which a program decides: whose fault, a number, whether to try again.

use std::net::SocketAddr;

use smt_proto::Failure;
use smt_proto::key_exchange::Fault;

use super::{Error, ErrorKind, OpenError, PeerPlace, Phase};

impl Error {
    /// The operation that failed.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The address of the peer; `None` if its name was not resolved.
    #[must_use]
    pub const fn peer(&self) -> Option<SocketAddr> {
        match &self.peer {
            PeerPlace::At(address) => Some(*address),
            PeerPlace::Named(_) => None,
        }
    }

    /// The cause of the failure.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Whose fault the failure is. The text of [`Error::kind`] begins with it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.kind.fault()
    }

    /// The number of the failure, which never changes its meaning: 1 to 99 of the interface, 101 to
    /// 199 of calls and messages, 201 to 299 of connecting, 301 to 399 of commands that were not
    /// taken.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.kind.code()
    }

    /// The answer of the peer's application that it refuses the message, which did not run: its
    /// code and its text.
    ///
    /// ```
    /// # fn shown(error: &smt::Error) -> String {
    /// match error.refusal() {
    ///     Some(refusal) => format!("refused: {} (code {})", refusal.text, refusal.code),
    ///     None => error.to_string(),
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn refusal(&self) -> Option<&Failure> {
        self.answer().filter(|answer| answer.not_run)
    }

    /// The answer of the peer's application that it has refused the message or failed with it;
    /// [`Failure::not_run`] tells which.
    #[must_use]
    pub fn answer(&self) -> Option<&Failure> {
        self.kind.answer()
    }

    /// Whether the same operation may succeed later, or with another server, without a change of
    /// program or configuration. Whether repeating a call is safe is told by [`Error::execution`].
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }
}

impl ErrorKind {
    fn answer(&self) -> Option<&Failure> {
        match self {
            Self::Call(error) => error.reason.answer(),
            Self::NotDelivered(failure) | Self::MayHaveBeenDelivered(failure) => failure.answer(),
            Self::CallOver
            | Self::Connect(_)
            | Self::Refused(_)
            | Self::PartsAreRead
            | Self::Unresolved(_) => None,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Call(error) => error.fault(),
            Self::Connect(error) => error.fault(),
            Self::Refused(error) => error.fault(),
            Self::CallOver => Fault::Peer,
            Self::PartsAreRead => Fault::Caller,
            Self::NotDelivered(failure) | Self::MayHaveBeenDelivered(failure) => failure.fault(),
            Self::Unresolved(_) => Fault::Environment,
        }
    }

    fn code(&self) -> u16 {
        match self {
            Self::Call(error) => error.code(),
            Self::Connect(error) => error.code(),
            Self::Refused(error) => error.code(),
            Self::PartsAreRead => 3,
            Self::CallOver => 4,
            Self::NotDelivered(failure) | Self::MayHaveBeenDelivered(failure) => failure.code(),
            Self::Unresolved(_) => 2,
        }
    }

    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Call(error) => error.is_transient(),
            Self::Connect(error) => error.is_transient(),
            Self::Refused(error) => error.is_transient(),
            Self::CallOver | Self::PartsAreRead => false,
            Self::NotDelivered(failure) | Self::MayHaveBeenDelivered(failure) => {
                failure.is_transient()
            }
            Self::Unresolved(_) => true,
        }
    }
}

impl OpenError {
    /// The answer of the peer's application that it refuses the message, as of [`Error::refusal`].
    #[must_use]
    pub fn refusal(&self) -> Option<&Failure> {
        match self {
            Self::Connect(error) => error.refusal(),
            _ => None,
        }
    }

    /// Whose fault it is that there is no endpoint.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Address { reason, .. } if reason.kind() != std::io::ErrorKind::InvalidInput => {
                Fault::Environment
            }
            Self::Address { .. }
            | Self::Credentials(_)
            | Self::Options(_)
            | Self::RegisteredKey(_)
            | Self::StateFileInUse { .. } => Fault::Caller,
            Self::Carrier(_) | Self::System { .. } => Fault::Environment,
            #[cfg(target_os = "linux")]
            Self::Xdp(smt_io::XdpError::Wildcard { .. }) => Fault::Caller,
            #[cfg(target_os = "linux")]
            Self::Native(_) | Self::Xdp(_) => Fault::Environment,
            Self::Connect(error) => error.fault(),
        }
    }

    /// The number of the failure, which never changes its meaning: 11 to 99, or that of the
    /// [`Error`] with which connecting failed.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Address { .. } => 11,
            Self::Carrier(_) => 12,
            #[cfg(target_os = "linux")]
            Self::Native(_) | Self::Xdp(_) => 12,
            Self::Credentials(_) => 13,
            Self::Options(_) => 14,
            Self::RegisteredKey(_) => 15,
            Self::StateFileInUse { .. } => 16,
            Self::System { .. } => 17,
            Self::Connect(error) => error.code(),
        }
    }

    /// Whether opening may succeed later, without a change of program or configuration: a server
    /// that was not reached may be reached then, and a port may be free.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Carrier(_) | Self::System { .. } | Self::StateFileInUse { .. } => true,
            Self::Connect(error) => error.is_transient(),
            // A name may resolve later; an address that is none stays none.
            Self::Address { reason, .. } => reason.kind() != std::io::ErrorKind::InvalidInput,
            Self::Credentials(_) | Self::Options(_) | Self::RegisteredKey(_) => false,
            // A right is not had later by itself.
            #[cfg(target_os = "linux")]
            Self::Native(error) => matches!(error, smt_io::NativeError::Bind { .. }),
            #[cfg(target_os = "linux")]
            Self::Xdp(error) => matches!(
                error,
                smt_io::XdpError::InUse { .. }
                    | smt_io::XdpError::Native(smt_io::NativeError::Bind { .. })
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use smt_proto::{CallError, CallFailure, ConnectError, Execution, Refused, SessionEnd};

    use super::*;

    fn error(phase: Phase, kind: impl Into<ErrorKind>) -> Error {
        Error::new(phase, SocketAddr::from(([192, 0, 2, 1], 9)), kind)
    }

    fn call(reason: CallFailure) -> Error {
        let execution = Execution::MayHaveRun;
        error(Phase::Call, CallError { reason, execution })
    }

    #[test]
    fn an_error_tells_whose_fault_it_is_and_whether_to_try_again() {
        let all = [
            (call(CallFailure::DeadlineExceeded), Fault::Limit, 103, true),
            (call(CallFailure::SessionEnded(SessionEnd::Reset)), Fault::Peer, 154, true),
            (error(Phase::Connect, ConnectError::NoServer), Fault::Environment, 204, true),
            (error(Phase::Reply, ErrorKind::CallOver), Fault::Peer, 4, false),
            (error(Phase::Export, Refused::NoSession), Fault::Caller, 302, true),
            (error(Phase::Part, ErrorKind::PartsAreRead), Fault::Caller, 3, false),
            (
                error(Phase::Connect, ErrorKind::Unresolved("why".to_owned())),
                Fault::Environment,
                2,
                true,
            ),
            (
                error(Phase::Send, ErrorKind::NotDelivered(CallFailure::TooLarge)),
                Fault::Limit,
                107,
                false,
            ),
        ];
        for (error, fault, code, is_transient) in all {
            let told = (error.fault(), error.code(), error.is_transient());
            assert_eq!(told, (fault, code, is_transient), "{error}");
            let prefix = format!("{} 192.0.2.1:9: {fault}: ", error.phase());
            assert!(error.to_string().starts_with(&prefix), "{error}");
        }
    }

    #[test]
    fn a_refusal_is_found_in_whatever_error_carries_it() {
        let refusal = Failure::refusal(7, "no");
        let reason = || CallFailure::Refused(Box::new(refusal.clone()));
        for refused in [call(reason()), error(Phase::Send, ErrorKind::NotDelivered(reason()))] {
            assert_eq!(refused.refusal(), Some(&refusal));
            assert_eq!(OpenError::from(refused).refusal(), Some(&refusal));
        }
        let failure = Failure::failed(8, "half of it");
        let failed = call(CallFailure::Failed(Box::new(failure.clone())));
        assert_eq!((failed.refusal(), failed.answer()), (None, Some(&failure)));
        assert_eq!(call(CallFailure::Dropped).answer(), None);
        assert_eq!(OpenError::Options("too small").refusal(), None);
    }

    #[test]
    fn an_open_error_tells_whose_fault_it_is_and_whether_to_try_again() {
        let reason = std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let address = OpenError::Address { address: "nowhere".to_owned(), reason };
        assert_eq!((address.fault(), address.code()), (Fault::Caller, 11));
        assert!(!address.is_transient());
        let unresolved = OpenError::Address {
            address: "nowhere".to_owned(),
            reason: std::io::Error::from(std::io::ErrorKind::NotFound),
        };
        assert_eq!(unresolved.fault(), Fault::Environment);
        assert!(unresolved.to_string().starts_with("environment: "));
        let unreached = OpenError::Connect(error(Phase::Connect, ConnectError::NoServer));
        assert_eq!((unreached.fault(), unreached.code()), (Fault::Environment, 204));
        assert!(unreached.is_transient());
    }
}
