// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plan of a measurement: sizes, numbers of concurrent calls, duration and repetitions.

use std::time::Duration;

use clap::Args;

use super::api::Api;
use crate::size::Size;
use crate::time_span;

/// The plan of a run.
#[derive(Args, Clone, Debug)]
pub(super) struct Plan {
    /// Bytes of requests and of replies
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZE",
        default_value = "64,1K,8K,64K",
        value_parser = Size::of_message
    )]
    pub(super) sizes: Vec<Size>,
    /// Calls in progress at once
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,100", value_parser = concurrency)]
    pub(super) concurrency: Vec<usize>,
    /// Time for each combination and repetition
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time_span::parse_nonzero)]
    pub(super) duration: Duration,
    /// Repetitions; the medians over them are told
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repeat: u32,
    /// Make calls by this interface; by default by blocking if it is one call at a time, else by
    /// tokio
    #[arg(long, value_name = "API")]
    pub(super) api: Option<Api>,
    /// Time for which waiting threads look before they sleep; 0us never
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = time_span::parse)]
    pub(super) spin: Duration,
    /// One JSON object per line instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

/// One combination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) size: Size,
    pub(super) concurrency: usize,
}

impl Plan {
    /// All combinations, in the order of the table.
    pub(super) fn cases(&self) -> Vec<Case> {
        let of_concurrency =
            |&concurrency| self.sizes.iter().map(move |&size| Case { size, concurrency });
        self.concurrency.iter().flat_map(of_concurrency).collect()
    }

    /// The interface for `concurrency` concurrent calls.
    pub(super) fn api(&self, concurrency: usize) -> Api {
        self.api.unwrap_or_else(|| Api::suited_to(concurrency))
    }
}

fn concurrency(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=CONCURRENCY_MAX) => Ok(number),
        _ => Err(format!("give 1 to {CONCURRENCY_MAX}")),
    }
}

/// The window of ids is no larger by default.
const CONCURRENCY_MAX: usize = 4_096;
