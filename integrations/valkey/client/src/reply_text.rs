// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies as text, as `valkey-cli` prints them.

use redis::Value;

/// How a reply is printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// For people: types and quotes are told.
    Typed,
    /// For programs: the bytes alone, a line for each.
    Raw,
}

/// The text of a reply, with a line feed at its end.
#[must_use]
pub fn reply_text(reply: &Value, form: Form) -> Vec<u8> {
    let mut text = Vec::new();
    match form {
        Form::Typed => typed(reply, "", &mut text),
        Form::Raw => raw(reply, &mut text),
    }
    if text.last() != Some(&b'\n') || form == Form::Raw {
        text.push(b'\n');
    }
    text
}

fn raw(reply: &Value, text: &mut Vec<u8>) {
    let joined = |items: &mut dyn Iterator<Item = &Value>, text: &mut Vec<u8>| {
        for (place, item) in items.enumerate() {
            if place > 0 {
                text.push(b'\n');
            }
            raw(item, text);
        }
    };
    match reply {
        Value::Nil => {}
        Value::BulkString(bytes) => text.extend_from_slice(bytes),
        Value::Array(items) | Value::Set(items) => joined(&mut items.iter(), text),
        Value::Push { data, .. } => joined(&mut data.iter(), text),
        Value::Map(pairs) => {
            joined(&mut pairs.iter().flat_map(|(key, value)| [key, value]), text);
        }
        other => text.extend_from_slice(plain(other).as_bytes()),
    }
}

fn typed(reply: &Value, indent: &str, text: &mut Vec<u8>) {
    match reply {
        Value::Nil => text.extend_from_slice(b"(nil)\n"),
        Value::BulkString(bytes) => {
            quote(bytes, text);
            text.push(b'\n');
        }
        Value::Int(number) => text.extend_from_slice(format!("(integer) {number}\n").as_bytes()),
        Value::Array(items) => list(items.iter(), "(empty array)", indent, text),
        Value::Set(items) => list(items.iter(), "(empty set)", indent, text),
        Value::Push { data, .. } => list(data.iter(), "(empty push)", indent, text),
        Value::Map(pairs) => {
            let items = pairs.iter().flat_map(|(key, value)| [key, value]);
            list(items, "(empty hash)", indent, text);
        }
        Value::ServerError(_) => {
            text.extend_from_slice(format!("(error) {}\n", plain(reply)).as_bytes());
        }
        other => text.extend_from_slice(format!("{}\n", plain(other)).as_bytes()),
    }
}

fn list<'a>(
    items: impl Iterator<Item = &'a Value> + Clone,
    empty: &str,
    indent: &str,
    text: &mut Vec<u8>,
) {
    let count = items.clone().count();
    if count == 0 {
        text.extend_from_slice(format!("{empty}\n").as_bytes());
    }
    let width = count.to_string().len();
    for (place, item) in items.enumerate() {
        if place > 0 {
            text.extend_from_slice(indent.as_bytes());
        }
        let number = format!("{:width$}) ", place + 1);
        text.extend_from_slice(number.as_bytes());
        typed(item, &format!("{indent}{}", " ".repeat(number.len())), text);
    }
}

fn plain(reply: &Value) -> String {
    match reply {
        Value::Int(number) => number.to_string(),
        Value::SimpleString(line) => line.clone(),
        Value::Okay => "OK".to_owned(),
        Value::Double(number) => number.to_string(),
        Value::Boolean(value) => format!("({value})"),
        Value::VerbatimString { text, .. } => text.clone(),
        Value::ServerError(error) => match error.details() {
            Some(details) => format!("{} {details}", error.code()),
            None => error.code().to_owned(),
        },
        other => format!("{other:?}"),
    }
}

fn quote(bytes: &[u8], text: &mut Vec<u8>) {
    text.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\r' => text.extend_from_slice(b"\\r"),
            b'\t' => text.extend_from_slice(b"\\t"),
            7 => text.extend_from_slice(b"\\a"),
            8 => text.extend_from_slice(b"\\b"),
            32..127 => text.push(*byte),
            other => text.extend_from_slice(format!("\\x{other:02x}").as_bytes()),
        }
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Value {
        Value::Array(vec![
            Value::BulkString(b"a\n\xff".to_vec()),
            Value::Array(vec![Value::Int(7), Value::Nil]),
            Value::Okay,
            Value::Array(Vec::new()),
        ])
    }

    #[test]
    fn people_see_types_and_nesting() {
        let text = reply_text(&reply(), Form::Typed);
        let expected =
            "1) \"a\\n\\xff\"\n2) 1) (integer) 7\n   2) (nil)\n3) OK\n4) (empty array)\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }

    #[test]
    fn programs_get_the_bytes() {
        assert_eq!(reply_text(&reply(), Form::Raw), b"a\n\xff\n7\n\nOK\n\n");
    }
}
