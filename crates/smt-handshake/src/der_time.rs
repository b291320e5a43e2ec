// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Moments in DER: UTCTime and GeneralizedTime as certificates and revocation lists have them
//! (RFC 5280 §4.1.2.5).

use smt_proto::WallTime;

/// The moment of an element, by its tag and its content; `None` if it is none, or before 1970.
pub(crate) fn time(tag: u8, text: &[u8]) -> Option<WallTime> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2_000 + year } else { 1_900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let at = |place: usize| rest.get(place..place + 2).and_then(number);
    let (month, day) = (at(0)?, at(2)?);
    if rest.len() != 10 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = at(4)? * 3_600 + at(6)? * 60 + at(8)?;
    let days = days_since_1970(year, month, day)?;
    Some(WallTime::from_secs(days * 86_400 + seconds))
}

fn number(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// Days from the first of 1970 to a day of the Gregorian calendar, whose years begin in March here.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let month_from_march = (month + 9) % 12;
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year;
    days.checked_sub(719_468)
}

pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_has_them() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((1972, 2, 29), 789),
            ((1972, 3, 1), 790),
            ((2000, 2, 29), 11_016),
            ((2026, 11, 26), 20_783),
            ((2100, 3, 1), 47_541),
            ((9999, 12, 31), 2_932_896),
        ] {
            let (year, month, day) = date;
            assert_eq!(days_since_1970(year, month, day), Some(days), "{date:?}");
        }
        assert_eq!(days_since_1970(1969, 12, 31), None);
    }
}
