// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that the key-value services have in common whatever carries them: command lines, storage,
//! the commands of a client, and the outcomes that it prints.

mod arguments;
mod caller;
mod commands;
mod outcome;
mod storage;
mod termination;

pub use arguments::{ClientArguments, ServerArguments};
pub use caller::common_name;
pub use clap::Parser;
pub use commands::{Store, run};
pub use outcome::{Failure, Refusal};
pub use storage::Storage;
pub use termination::{SHUTDOWN_LIMIT, terminated};
