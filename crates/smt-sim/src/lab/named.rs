// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The scenarios that come along: files of the folder `scenarios`, known by their names.

/// A scenario that comes along.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Named {
    /// The file's name, without its ending.
    pub name: &'static str,
    /// The file, with its comments.
    pub text: &'static str,
}

impl Named {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::new("smoke", include_str!("../../scenarios/smoke.toml")),
        Self::new("fixed-size", include_str!("../../scenarios/fixed-size.toml")),
        Self::new("homa-w1", include_str!("../../scenarios/homa-w1.toml")),
        Self::new("homa-w2", include_str!("../../scenarios/homa-w2.toml")),
        Self::new("homa-w3", include_str!("../../scenarios/homa-w3.toml")),
        Self::new("homa-w4", include_str!("../../scenarios/homa-w4.toml")),
        Self::new("homa-w5", include_str!("../../scenarios/homa-w5.toml")),
        Self::new("homa-w4-100g", include_str!("../../scenarios/homa-w4-100g.toml")),
        Self::new("rack-10", include_str!("../../scenarios/rack-10.toml")),
        Self::new("incast-100", include_str!("../../scenarios/incast-100.toml")),
        Self::new("incast-1000", include_str!("../../scenarios/incast-1000.toml")),
        Self::new("incast-ndp", include_str!("../../scenarios/incast-ndp.toml")),
    ];

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|named| named.name == name)
    }

    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }
}
