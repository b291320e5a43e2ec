// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes of a key-value service, for the script that all services go through.

mod certificates;
mod process;
mod service;

pub use certificates::Certificates;
pub use process::Process;
pub use service::Service;
