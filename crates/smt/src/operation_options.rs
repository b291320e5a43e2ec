// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a call or one-way message that has not begun, the same for tasks and threads.

/// Gives a builder of an [`Operation`](crate::operation::Operation) its options; `deadline` says in
/// the builder's documentation what a deadline does.
macro_rules! operation_options {
    ($builder:ident, deadline: $deadline:literal) => {
        impl $builder {
            pub(crate) fn new(operation: Operation) -> Self {
                Self(operation)
            }

            #[doc = $deadline]
            pub fn deadline(mut self, deadline: Duration) -> Self {
                self.0.deadline = Some(deadline);
                self
            }

            /// Waits for ever, though the client has a default deadline.
            pub fn no_deadline(mut self) -> Self {
                self.0.deadline = None;
                self
            }

            /// Sends the message again after a failure, within its deadline; by default as its
            /// client does ([`Builder::retry`](crate::Builder::retry)). A message in a
            /// [`Session`](crate::Session), and a call in parts, is sent once.
            pub fn retry(mut self, retry: Retry) -> Self {
                self.0.attempts.retry = Some(retry);
                self
            }

            /// Sends these named values beside the body, encrypted as it is: at most 64, of 4,096
            /// bytes in all.
            pub fn metadata(mut self, metadata: Metadata) -> Self {
                self.0.message.metadata = metadata;
                self
            }
        }
    };
}

pub(crate) use operation_options;
