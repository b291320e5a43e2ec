// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message that the application hands over to be sent: body and metadata.

use smt_record::Body;

use crate::metadata::Metadata;

/// A request, reply or one-way message to be sent. Whatever is a [`Body`] is one without metadata.
#[derive(Clone, Debug, Default)]
pub struct OutgoingMessage {
    /// The body: one buffer or a chain of them, which are not copied together.
    pub body: Body,
    /// Named values beside the body.
    pub metadata: Metadata,
}

impl OutgoingMessage {
    /// A message with this body.
    #[must_use]
    pub fn new(body: impl Into<Body>) -> Self {
        Self { body: body.into(), metadata: Metadata::new() }
    }

    /// The message with this metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// The application bytes, and whether they begin with metadata.
    pub(crate) fn into_application_bytes(self) -> (Body, bool) {
        match self.metadata.into_encoded() {
            Some(encoded) => (self.body.behind(encoded), true),
            None => (self.body, false),
        }
    }
}

impl<B: Into<Body>> From<B> for OutgoingMessage {
    fn from(body: B) -> Self {
        Self::new(body)
    }
}

/// A value that can be sent as a message: bytes of any kind, or an [`OutgoingMessage`].
///
/// It is another name of `Into<OutgoingMessage>`, for the sake of the compiler's words about a
/// value that is none:
///
/// ```compile_fail,E0277
/// struct Order { number: u32 }
/// fn send(message: impl smt_proto::IntoMessage) {}
/// send(Order { number: 7 });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no message",
    label = "not bytes",
    note = "a message is bytes: give text, `Vec<u8>`, `Bytes`, an array or a slice of bytes",
    note = "encode a value of your own first, for example with serde_json or postcard"
)]
pub trait IntoMessage {
    /// Makes the message.
    fn into_message(self) -> OutgoingMessage;
}

#[diagnostic::do_not_recommend]
impl<M: Into<OutgoingMessage>> IntoMessage for M {
    fn into_message(self) -> OutgoingMessage {
        self.into()
    }
}
