// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reason why a text is no address, and how much of the text is quoted.

use std::net::IpAddr;

use super::{has_port, without_brackets};

/// The defect of a text that is no address of digits, and the forms of an address; `None` if it can
/// be a name and a port.
pub(super) fn defect(text: &str) -> Option<String> {
    what_is_wrong(text).map(|wrong| format!("{wrong}; {FORM}"))
}

fn what_is_wrong(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("it is empty".to_owned());
    }
    if text.contains('/') {
        return Some("it is a URL or a path".to_owned());
    }
    if text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Some("it has a blank or a control character in it".to_owned());
    }
    let has_bracket = text.contains(['[', ']']);
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if has_port(text) || has_bracket && host.ends_with(']') => {
            (host, Some(port))
        }
        _ => (text, None),
    };
    if has_bracket {
        let is_closed = host.starts_with('[') && host.ends_with(']');
        let inside = without_brackets(host);
        if !is_closed || inside.contains(['[', ']']) {
            return Some("its brackets do not enclose an IPv6 address".to_owned());
        }
        if inside.parse::<IpAddr>().is_err() {
            return Some(format!("{:?} is no IPv6 address", shown(inside)));
        }
    } else if host.is_empty() {
        return Some("there is no host before the port".to_owned());
    } else if host.contains(':') {
        return Some("it has several colons, and is no IPv6 address".to_owned());
    } else if host.len() > HOST_LEN_MAX {
        let length = host.len();
        return Some(format!("the host has {length} bytes, and a name at most {HOST_LEN_MAX}"));
    }
    let port = port.filter(|port| port.parse::<u16>().is_err())?;
    Some(format!("the port {:?} is no number from 1 to 65535", shown(port)))
}

/// The text, or the beginning of a long one.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The forms of an address.
const FORM: &str = "give HOST, HOST:PORT or [IPV6]:PORT";
/// Bytes of the longest name in DNS (RFC 1035 §3.1), as text.
const HOST_LEN_MAX: usize = 253;
/// Characters of an address that errors quote.
const SHOWN_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::super::Address;

    #[test]
    fn an_address_that_can_be_none_is_refused_with_the_reason_and_the_forms() {
        let long = "x".repeat(300);
        for (text, reason) in [
            ("", "it is empty"),
            ("http://db7", "it is a URL or a path"),
            ("db7/", "it is a URL or a path"),
            ("d b7", "it has a blank or a control character in it"),
            ("db7\n", "it has a blank or a control character in it"),
            ("db7:99999", "the port \"99999\" is no number from 1 to 65535"),
            ("db7:-1", "the port \"-1\" is no number from 1 to 65535"),
            ("db7:", "the port \"\" is no number from 1 to 65535"),
            ("127.0.0.1:99999", "the port \"99999\" is no number from 1 to 65535"),
            ("[::1]:99999", "the port \"99999\" is no number from 1 to 65535"),
            (":17379", "there is no host before the port"),
            ("[::1", "its brackets do not enclose an IPv6 address"),
            ("::1]", "its brackets do not enclose an IPv6 address"),
            ("[[::1]]", "its brackets do not enclose an IPv6 address"),
            ("[::1]9", "its brackets do not enclose an IPv6 address"),
            ("[db7]:9", "\"db7\" is no IPv6 address"),
            ("[]:9", "\"\" is no IPv6 address"),
            ("a:b:c", "it has several colons, and is no IPv6 address"),
            (&long, "the host has 300 bytes, and a name at most 253"),
        ] {
            let error = Address::from(text).check().unwrap_err().to_string();
            assert!(error.starts_with("caller: invalid address "), "{error}");
            let told = format!(": {reason}; give HOST, HOST:PORT or [IPV6]:PORT");
            assert!(error.ends_with(&told), "{text:?}: {error}");
            assert!(error.len() < 250, "{error}");
        }
        for text in ["db7", "db7:0", "db7:65535", "[::1]", "[::1]:9", "::1", "a_b.example:1"] {
            Address::from(text).check().unwrap();
        }
    }
}
