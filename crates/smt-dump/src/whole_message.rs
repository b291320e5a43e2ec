// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message of which all records have opened, alone or in a bundle.

use std::path::PathBuf;

use smt_wire::{Kind, MessageId, PART_PREFIX_LEN, PartMarks, request_of_part};

use crate::row::Whole;
use crate::terms::Direction;

/// A message of which all records have opened.
pub(crate) struct WholeMessage<'a> {
    id: MessageId,
    kind: Kind,
    parts: PartMarks,
    /// The request of a part; `None` also of a part that is too short to name it.
    request: Option<MessageId>,
    /// The application bytes; those of a part without its request's id.
    pub(crate) body: &'a [u8],
}

impl<'a> WholeMessage<'a> {
    pub(crate) fn new(id: MessageId, kind: Kind, parts: PartMarks, bytes: &'a [u8]) -> Self {
        let request = match kind {
            Kind::Part => request_of_part(bytes).ok(),
            _ => None,
        };
        let body = match request {
            Some(_) => &bytes[PART_PREFIX_LEN..],
            None => bytes,
        };
        Self { id, kind, parts, request, body }
    }

    /// The message as it is shown, with the file that it was written to.
    pub(crate) fn shown(&self, path: Option<PathBuf>) -> Whole {
        Whole {
            id: self.id,
            kind: self.kind,
            length: self.body.len(),
            parts: self.parts,
            request: self.request,
            path,
        }
    }

    /// The file that it is written to. Parts of a call stand together, in their order.
    pub(crate) fn file_name(&self, to: Direction) -> String {
        let Direction { target, session } = to;
        let what = match self.request {
            Some(request) => format!("{request}-part-{:05}", self.parts.number),
            None => format!("{}-{}", self.id, self.kind.name().to_lowercase()),
        };
        format!("{session}-{what}-to-{}-port-{}", target.ip(), target.port())
    }
}
