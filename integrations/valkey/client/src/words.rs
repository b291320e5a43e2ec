// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A line of a command's user as words, with the quotes of `valkey-cli`.

/// A quote is open at the end of a line, or something stands right behind a closing one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnbalancedQuotes;

/// The words of a line. `"…"` has the escapes `\n`, `\r`, `\t`, `\b`, `\a`, `\xHH`, and `'…'` has
/// `\'` alone.
///
/// # Errors
/// Quotes are not balanced.
pub fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let (word, behind) = match rest[0] {
            b'"' => double_quoted(&rest[1..])?,
            b'\'' => single_quoted(&rest[1..])?,
            _ => bare(rest),
        };
        if behind.first().is_some_and(|next| !next.is_ascii_whitespace()) {
            return Err(UnbalancedQuotes);
        }
        words.push(word);
        rest = behind.trim_ascii_start();
    }
    Ok(words)
}

fn bare(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let end = text.iter().position(u8::is_ascii_whitespace);
    let (word, behind) = text.split_at(end.unwrap_or(text.len()));
    (word.to_vec(), behind)
}

fn single_quoted(text: &[u8]) -> Result<(Vec<u8>, &[u8]), UnbalancedQuotes> {
    let mut word = Vec::new();
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\\', b'\'', behind @ ..] => {
                word.push(b'\'');
                behind
            }
            [b'\'', behind @ ..] => return Ok((word, behind)),
            [letter, behind @ ..] => {
                word.push(*letter);
                behind
            }
            [] => return Err(UnbalancedQuotes),
        };
    }
}

fn double_quoted(text: &[u8]) -> Result<(Vec<u8>, &[u8]), UnbalancedQuotes> {
    let mut word = Vec::new();
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\\', b'x', high, low, behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                behind
            }
            [b'\\', letter, behind @ ..] => {
                word.push(escaped(*letter));
                behind
            }
            [b'"', behind @ ..] => return Ok((word, behind)),
            [letter, behind @ ..] => {
                word.push(*letter);
                behind
            }
            [] => return Err(UnbalancedQuotes),
        };
    }
}

fn escaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 32) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_escapes_are_those_of_the_servers_own_command() {
        let line = br#" set  "a b\x41\n" 'it\'s' x"#;
        let expected: [&[u8]; 4] = [b"set", b"a bA\n", b"it's", b"x"];
        assert_eq!(words(line), Ok(expected.map(<[u8]>::to_vec).to_vec()));
        for bad in [&b"\"open"[..], b"'open", b"\"a\"b"] {
            assert_eq!(words(bad), Err(UnbalancedQuotes), "{bad:?}");
        }
    }
}
