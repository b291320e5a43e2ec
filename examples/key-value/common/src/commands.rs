// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of a client: one a line, each answered by one line.

use std::io::{self, BufRead, Write};

use bytes::Bytes;

use crate::Failure;

/// A key-value service as its client sees it.
#[expect(async_fn_in_trait, reason = "one task uses it")]
pub trait Store {
    /// The value of a key.
    async fn get(&self, key: String) -> Result<Option<Bytes>, Failure>;
    /// Stores a value.
    async fn set(&self, key: String, value: Bytes) -> Result<(), Failure>;
    /// Removes a key; whether there was one.
    async fn delete(&self, key: String) -> Result<bool, Failure>;
    /// The keys that begin so, in order.
    async fn list(&self, prefix: String) -> Result<Vec<String>, Failure>;
}

/// Runs the commands of standard input: `get KEY`, `set KEY TEXT`, `fill KEY BYTES` (a value of so
/// many bytes), `delete KEY` and `list PREFIX`.
///
/// # Errors
/// Standard input or output failed.
pub async fn run(store: &impl Store) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let answer = answer(store, &line?).await.unwrap_or_else(|failure| failure.to_string());
        let mut output = io::stdout().lock();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

async fn answer(store: &impl Store, line: &str) -> Result<String, Failure> {
    let mut words = line.splitn(3, ' ').map(str::to_owned);
    let mut word = || words.next().unwrap_or_default();
    let (command, key, value) = (word(), word(), word());
    Ok(match command.as_str() {
        "get" => store.get(key).await?.map_or_else(|| "none".to_owned(), value_text),
        "set" => store.set(key, value.into()).await.map(|()| "stored".to_owned())?,
        "fill" => {
            let value = filling(value.parse().unwrap_or_default());
            store.set(key, value).await.map(|()| "stored".to_owned())?
        }
        "delete" => match store.delete(key).await? {
            true => "deleted".to_owned(),
            false => "none".to_owned(),
        },
        "list" => format!("keys {}", store.list(key).await?.join(" ")),
        _ => "commands: get, set, fill, delete, list".to_owned(),
    })
}

/// Bytes that differ from place to place.
fn filling(length: usize) -> Bytes {
    (0..length).map(|at| (at * at / 251) as u8).collect()
}

fn value_text(value: Bytes) -> String {
    match value.len() {
        ..=100 => format!("value {}", String::from_utf8_lossy(&value)),
        length if value == filling(length) => format!("value of {length} bytes as filled"),
        length => format!("value of {length} bytes"),
    }
}
