// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A page of plots and tables in one HTML file: it needs no network and no script, and is as dark
//! as its reader's system.

use crate::table::Table;

/// A page that is being written, from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    heading: String,
    /// How many colours its lines and bars have.
    colors: usize,
    body: String,
}

/// A picture of a [`Page`].
#[derive(Clone, Debug)]
pub struct Figure {
    /// The caption above the figure, if there is one.
    pub caption: Option<String>,
    /// A [`Plot`](crate::Plot) or [`Bars`](crate::Bars) as SVG.
    pub svg: String,
}

impl Page {
    /// An empty page, for lines and bars of `colors` colours.
    pub fn new(title: &str, heading: &str, colors: usize) -> Self {
        Self { title: title.to_owned(), heading: heading.to_owned(), colors, body: String::new() }
    }

    /// Adds what is to be read before all else.
    pub fn add_warning(&mut self, text: &str) {
        let text = escaped(text);
        self.body.push_str(&format!("<p><strong>{text}</strong></p>\n"));
    }

    /// Adds text whose lines stay as they are.
    pub fn add_text(&mut self, text: &str) {
        self.body.push_str(&format!("<pre>{}</pre>\n", escaped(text)));
    }

    /// Adds a heading, how to read what follows, and figures side by side.
    pub fn add_figures(&mut self, heading: &str, caption: Option<&str>, figures: &[Figure]) {
        self.add_heading(heading);
        if let Some(caption) = caption {
            self.body.push_str(&format!("<p>{}</p>\n", escaped(caption)));
        }
        self.body.push_str("<div class=\"row\">\n");
        for figure in figures {
            let caption = figure.caption.as_ref().map(|caption| escaped(caption));
            let caption = caption.map(|caption| format!("<figcaption>{caption}</figcaption>\n"));
            let (caption, svg) = (caption.unwrap_or_default(), &figure.svg);
            self.body.push_str(&format!("<figure>\n{caption}{svg}</figure>\n"));
        }
        self.body.push_str("</div>\n");
    }

    /// Adds a heading and a table.
    pub fn add_table(&mut self, heading: &str, table: &Table) {
        self.add_heading(heading);
        self.body.push_str(&table.html());
    }

    /// All of it.
    pub fn html(&self) -> String {
        let (title, heading) = (escaped(&self.title), escaped(&self.heading));
        let (colors, body) = (color_style(self.colors), &self.body);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{colors}</style>\n</head>\n<body>\n\
             <h1>{heading}</h1>\n{body}</body>\n</html>\n"
        )
    }

    fn add_heading(&mut self, heading: &str) {
        self.body.push_str(&format!("<h2>{}</h2>\n", escaped(heading)));
    }
}

/// A plot or bars as an SVG file of its own, for documents that show pictures. It is as dark as its
/// reader's system, as a [`Page`] is; `colors` is the number of colours that it may have.
pub fn svg_file(element: &str, colors: usize) -> String {
    let colors = color_style(colors);
    let style = format!("<style>\n{STYLE}{FILE_STYLE}{colors}</style>\n");
    let (head, body) = element.split_once('\n').unwrap_or_default();
    head.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1) + "\n" + &style + body
}

fn color_style(colors: usize) -> String {
    let rule = |number: usize| {
        let color = color(number, colors);
        format!("path.c{number} {{ stroke: {color}; }} rect.c{number} {{ fill: {color}; }}\n")
    };
    (0..colors).map(rule).collect()
}

/// Two colours are those of the style. More are hues around the circle, in two lightnesses, so that
/// neighbours differ for readers who do not see hues.
fn color(number: usize, count: usize) -> String {
    if count <= 2 {
        return format!("var(--c{number})");
    }
    let lightness = if number.is_multiple_of(2) { 45 } else { 62 };
    format!("hsl({} 65% {lightness}%)", number * 360 / count)
}

/// Text as text: no letter of it begins an element.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}

/// Dark text on light ground, or the other way round, as the reader's system is set. The two
/// colours differ in lightness too, for readers who do not see red.
const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --text: #222; --faint: #ddd; --c0: #c0392b; --c1: #1f77b4; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16181c; --text: #ddd; --faint: #383c44; --c0: #ff8a75; --c1: #6fb7ff; }
}
body { margin: 1.5rem; background: var(--ground); color: var(--text); font: 15px/1.4 system-ui, sans-serif; }
h1, h2 { font-weight: 600; } h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p { max-width: 60rem; } pre { white-space: pre-wrap; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; max-width: 110rem; }
figure { margin: 0; max-width: 44rem; } figcaption { font-weight: 600; margin-bottom: .3rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--text); font-size: 11px; }
svg path { fill: none; } .grid { stroke: var(--faint); } .frame { stroke: var(--text); }
.line { stroke-width: 1.6; stroke-linejoin: round; }
.table { overflow-x: auto; } table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--faint); }
td { max-width: 28rem; overflow-wrap: anywhere; }
";
/// A plot in a page has these from the page.
const FILE_STYLE: &str = "svg { background: var(--ground); font-family: system-ui, sans-serif; }\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_its_own_has_its_style_and_its_namespace() {
        let element = "<svg viewBox=\"0 0 1 1\">\n<path class=\"c0\" d=\"M0 0\"/>\n</svg>\n";
        let file = svg_file(element, 1);
        let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">\n<style>";
        assert!(file.starts_with(head), "{file}");
        assert!(file.ends_with("<path class=\"c0\" d=\"M0 0\"/>\n</svg>\n"));
        assert!(file.contains("path.c0 { stroke: var(--c0); }"), "{file}");
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
        let mut page = Page::new("<t>", "<h>", 1);
        page.add_warning("<w>");
        page.add_text("<x>");
        page.add_figures("<f>", Some("<c>"), &[]);
        let html = page.html();
        for tag in ["<t>", "<h>", "<w>", "<x>", "<f>", "<c>"] {
            assert!(!html.contains(tag), "{html}");
        }
    }

    #[test]
    fn a_page_has_a_rule_for_each_colour_and_no_two_alike() {
        for count in [1, 2, 3, 14] {
            let colors: Vec<String> = (0..count).map(|number| color(number, count)).collect();
            let mut different = colors.clone();
            different.sort();
            different.dedup();
            assert_eq!(different.len(), count);
            let html = Page::new("", "", count).html();
            assert_eq!(html.matches("rect.c").count(), count);
        }
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let html = Page::new("t", "h", 14).html();
        assert!(html.contains("default-src 'none'"));
        for outside in ["http:", "https:", "<script", "<link", "url(", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
