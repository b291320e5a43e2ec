// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and replies, as postcard encodes them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub enum Request {
    Get { key: String },
    Set { key: String, value: Bytes },
    Delete { key: String },
    List { prefix: String },
}

#[derive(Deserialize, Serialize)]
pub enum Reply {
    Value(Option<Bytes>),
    Stored,
    Deleted(bool),
    Keys(Vec<String>),
}
