// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The chapters of docs/guide as documentation of modules: their code blocks are doctests.

macro_rules! chapters {
    ($($module:ident $file:literal)*) => {
        $(#[doc = include_str!(concat!("../../../../docs/guide/src/", $file))] pub mod $module {})*
    };
}

chapters! {
    what_it_is "what-it-is.md"
    first_service "first-service.md"
    keys "keys.md"
    tickets "tickets.md"
    errors "errors.md"
    deadlines "deadlines.md"
    messages "messages.md"
    parts "parts.md"
    clients "clients.md"
    deployment "deployment.md"
    native "native.md"
    fleet "fleet.md"
    valkey "valkey.md"
    operations "operations.md"
    esp "esp.md"
    replication "replication.md"
    transformation "transformation.md"
    accountability "accountability.md"
    trusted_devices "trusted-devices.md"
}
