// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A table of texts, as HTML or Markdown.

use crate::page::escaped;

/// A table: a name and values for each row, a heading for each column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The heading above the names of the rows.
    pub corner: String,
    /// Headings of the columns of values.
    pub columns: Vec<String>,
    /// Names, and a value for each column.
    pub rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// The element, for a [`Page`](crate::Page).
    pub fn html(&self) -> String {
        let cells = |tag: &str, values: &[String]| {
            let cell = |value: &String| format!("<{tag}>{}</{tag}>", escaped(value));
            values.iter().map(cell).collect::<String>()
        };
        let mut table = format!(
            "<div class=\"table\"><table>\n<tr><td>{}</td>{}</tr>\n",
            escaped(&self.corner),
            cells("th", &self.columns)
        );
        for (name, values) in &self.rows {
            let (name, values) = (escaped(name), cells("td", values));
            table.push_str(&format!("<tr><th>{name}</th>{values}</tr>\n"));
        }
        table + "</table></div>\n"
    }

    /// The lines in Markdown; values stand at the right of their columns.
    pub fn markdown(&self) -> String {
        let mut text = markdown_row(&self.corner, &self.columns);
        text.push_str(&format!("|---|{}\n", "---:|".repeat(self.columns.len())));
        for (name, values) in &self.rows {
            text.push_str(&markdown_row(name, values));
        }
        text
    }
}

fn markdown_row(name: &str, values: &[String]) -> String {
    format!("| {name} | {} |\n", values.join(" | "))
}

/// A number with the three digits that count.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size < 1e5 && value.fract() == 0.0 => format!("{value:.0}"),
        size if size < 1.0 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        size if size < 1e5 => format!("{value:.0}"),
        size if size < 1e6 => format!("{:.0}k", value / 1e3),
        _ => format!("{:.2}M", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Table {
            corner: "peer".to_owned(),
            columns: texts(&["one", "two"]),
            rows: vec![("a<b".to_owned(), texts(&["1", "2"]))],
        }
    }

    #[test]
    fn a_table_in_markdown_has_its_values_at_the_right() {
        assert_eq!(table().markdown(), "| peer | one | two |\n|---|---:|---:|\n| a<b | 1 | 2 |\n");
    }

    #[test]
    fn a_table_in_html_has_a_heading_for_each_row_and_column() {
        let html = table().html();
        assert!(html.contains("<tr><td>peer</td><th>one</th><th>two</th></tr>"), "{html}");
        assert!(html.contains("<tr><th>a&lt;b</th><td>1</td><td>2</td></tr>"), "{html}");
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (64.0, "64"),
            (123_456.0, "123k"),
            (1_234_567.0, "1.23M"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
