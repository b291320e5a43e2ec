// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One row of a table.

use std::panic::{AssertUnwindSafe, catch_unwind};

use smt::{CredentialError, Error, Fault, MetadataError, OpenError, RegisteredKeyError};

use crate::bystander::Bystander;

/// Something that a user does wrong, and what the user is told.
pub(crate) struct Misuse {
    pub(crate) done: &'static str,
    /// Whose fault it is; `None` where the error has no such fact, and its text does not begin with
    /// one.
    fault: Option<Fault>,
    /// Stands in the text.
    text: &'static str,
    act: fn(&Bystander) -> Told,
}

/// The error that came of it.
pub(crate) struct Told {
    fault: Option<Fault>,
    text: String,
}

/// A row.
pub(crate) fn misuse(
    done: &'static str,
    fault: impl Into<Option<Fault>>,
    text: &'static str,
    act: fn(&Bystander) -> Told,
) -> Misuse {
    Misuse { done, fault: fault.into(), text, act }
}

impl Misuse {
    /// Does it. A panic is an outcome too.
    pub(crate) fn told(&self, bystander: &Bystander) -> Told {
        let act = AssertUnwindSafe(|| (self.act)(bystander));
        catch_unwind(act).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            observed(format!("panic: {}", text.unwrap_or_default()))
        })
    }

    /// Tells what is wrong with an answer.
    pub(crate) fn defect(&self, told: &Told) -> Option<String> {
        let is_right = told.fault == self.fault && told.text.contains(self.text);
        let (done, fault, text) = (self.done, told.fault, &told.text);
        (!is_right).then(|| format!("{done}: {fault:?}: {text}"))
    }
}

/// The error of what must fail.
#[track_caller]
pub(crate) fn failed<T>(outcome: Result<T, impl Into<Told>>) -> Told {
    match outcome {
        Ok(_) => Told { fault: None, text: "it was done".to_owned() },
        Err(error) => error.into(),
    }
}

/// An outcome that is no error, in words.
pub(crate) fn observed(text: impl Into<String>) -> Told {
    Told { fault: None, text: text.into() }
}

impl From<Error> for Told {
    fn from(error: Error) -> Self {
        Self { fault: Some(error.fault()), text: format!("{error} [{:?}]", error.execution()) }
    }
}

impl From<OpenError> for Told {
    fn from(error: OpenError) -> Self {
        let text = error.to_string();
        let fault = error.fault();
        // The text has to say it too.
        let is_said = text.contains(&format!("{fault}: "));
        Self { fault: is_said.then_some(fault), text }
    }
}

/// Errors without a method for it say in their text whose fault they are, or do not.
macro_rules! by_text {
    ($($error:ty)*) => {
        $(impl From<$error> for Told {
            fn from(error: $error) -> Self {
                let text = error.to_string();
                let all = [Fault::Caller, Fault::Environment, Fault::Limit, Fault::Peer];
                let begins = |fault: &Fault| text.starts_with(&format!("{fault}: "));
                Self { fault: all.into_iter().find(begins), text }
            }
        })*
    };
}

by_text! {
    CredentialError
    MetadataError
    RegisteredKeyError
    smt::pki::MakeCertificateError
    smt::Refused
    smt::ConnectError
}
