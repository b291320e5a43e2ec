// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fields of a table of a scenario file, each of which may be asked for once.
//!
//! 1. A field is taken out by its name with what it may be; anything else is an error with its
//!    line.
//! 2. [`Fields::end`] refuses what nobody has asked for, and lists what was asked for instead.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::error::ScenarioError;

/// A table that is being read.
pub(super) struct Fields<'t> {
    text: &'t str,
    /// The prefix of a field's name: nothing, or `topology.`.
    prefix: String,
    /// Where the table begins.
    line: usize,
    table: DeTable<'t>,
    known: Vec<&'static str>,
}

/// The value of a field, and its place in the file.
pub(super) struct Said<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

impl<'t> Fields<'t> {
    /// The file's own fields.
    pub(super) fn of_file(text: &'t str) -> Result<Self, ScenarioError> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            ScenarioError::new(line, format!("this is no TOML: {}", error.message()))
        })?;
        Ok(Self {
            text,
            prefix: String::new(),
            line: 1,
            table: table.into_inner(),
            known: Vec::new(),
        })
    }

    /// A table inside; it must be there.
    pub(super) fn table(&mut self, name: &'static str) -> Result<Self, ScenarioError> {
        match self.table_if_any(name)? {
            Some(table) => Ok(table),
            None => Err(self.missing(name, format_args!("a table [{name}]"))),
        }
    }

    /// A table inside, if it is there.
    pub(super) fn table_if_any(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Self>, ScenarioError> {
        let Some(said) = self.take(name) else {
            return Ok(None);
        };
        match said.value {
            DeValue::Table(table) => Ok(Some(Self {
                text: self.text,
                prefix: format!("{}{name}.", self.prefix),
                line: said.line,
                table,
                known: Vec::new(),
            })),
            other => {
                let permitted = format_args!("a table [{name}]");
                Err(self.wrong(name, said.line, &told(&other), permitted))
            }
        }
    }

    /// Text; nothing if it is not there.
    pub(super) fn text(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Said<String>>, ScenarioError> {
        let Some(said) = self.take(name) else {
            return Ok(None);
        };
        match said.value {
            DeValue::String(value) => Ok(Some(Said { value: value.into_owned(), line: said.line })),
            other => Err(self.wrong(name, said.line, &told(&other), "text in \"quotes\"")),
        }
    }

    /// Text or a number, as text; it must be there.
    pub(super) fn word(
        &mut self,
        name: &'static str,
        permitted: impl Display,
    ) -> Result<Said<String>, ScenarioError> {
        let Some(said) = self.take(name) else {
            return Err(self.missing(name, permitted));
        };
        let value = match said.value {
            DeValue::String(value) => value.into_owned(),
            DeValue::Integer(number) => match whole(&number) {
                Some(value) => value.to_string(),
                // As it was written, to be told what is wrong with it.
                None => number.to_string(),
            },
            other => return Err(self.wrong(name, said.line, &told(&other), permitted)),
        };
        Ok(Said { value, line: said.line })
    }

    /// One of these words; the first if it is not there.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, ScenarioError> {
        match self.text(name)? {
            None => Ok(choices[0].1),
            Some(said) => self.chosen(name, &said, choices),
        }
    }

    /// One of these words; it must be there.
    pub(super) fn choice_given<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, ScenarioError> {
        match self.text(name)? {
            None => Err(self.missing(name, list(choices))),
            Some(said) => self.chosen(name, &said, choices),
        }
    }

    /// A whole number, or this if it is not there.
    pub(super) fn integer(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
        otherwise: u64,
    ) -> Result<u64, ScenarioError> {
        let no_words: [(&str, u64); 0] = [];
        let given = self.integer_or_word(name, range, &no_words)?;
        Ok(given.unwrap_or(otherwise))
    }

    /// A whole number; it must be there.
    pub(super) fn integer_given(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, ScenarioError> {
        let permitted = bounds(&range);
        let no_words: [(&str, u64); 0] = [];
        match self.integer_or_word(name, range, &no_words)? {
            Some(number) => Ok(number),
            None => Err(self.missing(name, permitted)),
        }
    }

    /// A whole number, or a word that stands for something; nothing if it is not there.
    pub(super) fn integer_or_word<T: Copy + From<u64>>(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
        words: &[(&str, T)],
    ) -> Result<Option<T>, ScenarioError> {
        let Some(said) = self.take(name) else {
            return Ok(None);
        };
        match &said.value {
            DeValue::Integer(number) => {
                if let Some(value) = whole(number).filter(|value| range.contains(value)) {
                    return Ok(Some(T::from(value)));
                }
            }
            DeValue::String(word) => {
                if let Some((_, meant)) = words.iter().find(|(known, _)| known == word) {
                    return Ok(Some(*meant));
                }
            }
            _ => {}
        }
        let permitted = match words.is_empty() {
            true => bounds(&range),
            false => format!("{}, or {}", bounds(&range), list(words)),
        };
        Err(self.wrong(name, said.line, &told(&said.value), permitted))
    }

    /// A number; it must be there.
    pub(super) fn decimal_given(
        &mut self,
        name: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<f64, ScenarioError> {
        let permitted = format!("a number from {} to {}", range.start(), range.end());
        let Some(said) = self.take(name) else {
            return Err(self.missing(name, permitted));
        };
        let digits = match &said.value {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => "",
        };
        match digits.replace('_', "").parse() {
            Ok(value) if range.contains(&value) => Ok(value),
            _ => Err(self.wrong(name, said.line, &told(&said.value), permitted)),
        }
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), ScenarioError> {
        let first = self.table.iter().min_by_key(|(key, _)| key.span().start);
        let Some((key, _)) = first else {
            return Ok(());
        };
        let text = format!(
            "{}{} is no field; permitted here: {}",
            self.prefix,
            key.get_ref(),
            self.known.join(", ")
        );
        Err(ScenarioError::new(line_of(self.text, key.span().start), text))
    }

    /// This field is something else than permitted.
    pub(super) fn wrong(
        &self,
        name: &str,
        line: usize,
        is: &str,
        permitted: impl Display,
    ) -> ScenarioError {
        let text = format!("{}{name} is {is}; permitted: {permitted}", self.prefix);
        ScenarioError::new(line, text)
    }

    fn missing(&self, name: &str, permitted: impl Display) -> ScenarioError {
        let like = |key: &str| strsim::osa_distance(key, name) <= MISSPELT;
        if let Some((key, _)) = self.table.iter().find(|(key, _)| like(key.get_ref())) {
            let line = line_of(self.text, key.span().start);
            let text = format!("{}{} is no field: {name}?", self.prefix, key.get_ref());
            return ScenarioError::new(line, text);
        }
        let text = format!("{}{name} is missing; permitted: {permitted}", self.prefix);
        ScenarioError::new(self.line, text)
    }

    fn take(&mut self, name: &'static str) -> Option<Said<DeValue<'t>>> {
        self.known.push(name);
        let value: Spanned<DeValue<'t>> = self.table.remove(name)?;
        Some(Said { line: line_of(self.text, value.span().start), value: value.into_inner() })
    }

    fn chosen<T: Copy>(
        &self,
        name: &str,
        said: &Said<String>,
        choices: &[(&str, T)],
    ) -> Result<T, ScenarioError> {
        let meant = choices.iter().find(|(word, _)| *word == said.value);
        let is = || format!("{:?}", said.value);
        meant
            .map(|(_, meant)| *meant)
            .ok_or_else(|| self.wrong(name, said.line, &is(), list(choices)))
    }
}

/// A number of any radix, unless it is negative or too large.
fn whole(number: &DeInteger<'_>) -> Option<u64> {
    let digits = number.as_str().replace('_', "");
    u64::from_str_radix(digits.trim_start_matches('+'), number.radix()).ok()
}

/// The text of a value as it was written, as far as that is short.
fn told(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        other => format!("of type {}", other.type_str()),
    }
}

fn list<T>(choices: &[(&str, T)]) -> String {
    let words = choices.iter().map(|(word, _)| format!("{word:?}"));
    words.collect::<Vec<_>>().join(", ")
}

fn bounds(range: &RangeInclusive<u64>) -> String {
    format!("a whole number from {} to {}", range.start(), range.end())
}

/// Letters that are added, left out, changed, or in each other's place, and it still is meant.
const MISSPELT: usize = 2;

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    1 + before.filter(|byte| **byte == b'\n').count()
}
