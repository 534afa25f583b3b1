//! Renders output as a terminal would show it: carriage returns, cursor moves and colours applied.
//!
//! A terminal emulator library does the work. It keeps only its screen: a row that scrolls off the top can never
//! change again and becomes text at once. So all output is shown, however long it is, and memory is bounded by the
//! text and one screen. While output consists of plain lines, the current line is enough ([`lines`]); the emulator
//! gets the latest of them when it is needed.
//!
//! Lines that the terminal wrapped are joined; spaces at the end of lines and blank lines at the end are removed. A
//! full-screen program that is still running is shown as its screen, below the earlier output. Output that a program
//! makes the terminal discard (as `clear` does) is discarded.

mod budget;
mod lines;
mod screen;
#[cfg(test)]
mod tests;
mod text;

use std::{mem, panic};

use avt::{
    Parser,
    parser::{Function, State},
};
use tokio::sync::Semaphore;

use self::{budget::Budget, lines::Lines, screen::Screen, text::Text};
use crate::ledger::Size;

/// Limits how many threads render at a time. A screen can take 30 MiB.
static RENDER_SLOTS: Semaphore = Semaphore::const_new(2);

/// The end of a text whose rendering was given up.
const GIVEN_UP: &str = "\n[the rest of the output is not shown, because it draws too much: get it with shell/read and raw]";

/// What to do with colours and other attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// Plain text.
    Strip,
    /// Text with the shortest escape sequences that produce the attributes.
    Keep,
}

/// Renders output as a terminal of this size would show it, from an empty screen.
pub fn render(output: &[u8], size: Size, colours: Colours) -> String {
    let mut renderer = Renderer::new(size, colours);
    renderer.feed(output);
    renderer.finish()
}

/// Renders output as [`render`] does, if that is possible without a screen, and so quickly for little output. Returns
/// `None` if a screen is needed.
pub fn render_lines(output: &[u8], size: Size, colours: Colours) -> Option<String> {
    let mut renderer = Renderer { may_have_screen: false, ..Renderer::new(size, colours) };
    renderer.feed(output);
    let is_shown = !renderer.lacks_screen;
    is_shown.then(|| renderer.finish())
}

/// Runs rendering work on a blocking thread, so that it does not delay other tasks. At most two run at a time.
pub async fn render_in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let turn = RENDER_SLOTS.acquire().await.expect("the semaphore is never closed");
    let work = move || {
        let done = work();
        // The slot is released when the work ends, not when the caller stops waiting.
        drop(turn);
        done
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => panic::resume_unwind(error.into_panic()),
    }
}

/// Renders output incrementally.
pub struct Renderer {
    size: Size,
    colours: Colours,
    parser: Parser,
    /// The first bytes of an incomplete character.
    incomplete: Vec<u8>,
    /// The text that has scrolled off the screen.
    text: Text,
    /// The plain lines since the screen was last used; if set, they are all that is below the screen's cursor.
    lines: Option<Lines>,
    screen: Option<Screen>,
    may_have_screen: bool,
    lacks_screen: bool,
    budget: Budget,
    /// Whether the output draws more than the budget allows. The rest of it is not rendered.
    is_given_up: bool,
}

impl Renderer {
    /// Creates a renderer for a terminal of this size.
    pub fn new(size: Size, colours: Colours) -> Self {
        let size = size.clamped();
        Self {
            size,
            colours,
            parser: Parser::new(),
            incomplete: Vec::new(),
            text: Text::new(colours),
            lines: Some(Lines::new(usize::from(size.columns), colours)),
            screen: None,
            may_have_screen: true,
            lacks_screen: false,
            budget: Budget::new(),
            is_given_up: false,
        }
    }

    /// Renders the next bytes, which may begin and end anywhere, even within a character.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut joined = mem::take(&mut self.incomplete);
        let mut rest = match joined.is_empty() {
            true => bytes,
            false => {
                joined.extend_from_slice(bytes);
                &joined
            }
        };
        while !rest.is_empty() && !self.lacks_screen && !self.is_given_up {
            let (valid, invalid) = match str::from_utf8(rest) {
                Ok(text) => (text.len(), Some(0)),
                Err(error) => (error.valid_up_to(), error.error_len()),
            };
            let (text, after) = rest.split_at(valid);
            self.feed_text(str::from_utf8(text).expect("this part was just validated"));
            rest = match invalid {
                Some(0) => after,
                Some(length) => {
                    self.feed_text("\u{fffd}");
                    &after[length..]
                }
                None => {
                    self.incomplete = after.to_vec();
                    break;
                }
            };
        }
    }

    /// Returns the text of all output.
    pub fn finish(mut self) -> String {
        if !self.incomplete.is_empty() {
            self.feed_text("\u{fffd}");
        }
        if let Some(screen) = &self.screen {
            screen.write_to(&mut self.text, self.lines.is_some());
        }
        if let Some(lines) = self.lines {
            self.text.push_lines(&lines.finish());
        }
        let mut text = self.text.finish();
        if self.is_given_up {
            text.push_str(GIVEN_UP);
        }
        text
    }

    fn feed_text(&mut self, mut text: &str) {
        while !text.is_empty() && !self.lacks_screen && !self.is_given_up {
            if let (Some(lines), State::Ground) = (&mut self.lines, self.parser.state) {
                let run = text.bytes().position(|byte| !(b' '..=b'~').contains(&byte));
                let printed = lines.print_ascii(&text[..run.unwrap_or(text.len())]);
                text = &text[printed..];
            }
            let mut characters = text.chars();
            let Some(function) = characters.next().and_then(|next| self.parser.feed(next)) else {
                text = characters.as_str();
                continue;
            };
            text = characters.as_str();
            self.apply(function);
        }
    }

    fn apply(&mut self, function: Function) {
        if let Some(lines) = &mut self.lines {
            if lines.apply(&function) {
                self.is_given_up = !self.budget.has_room(self.text.len() + lines.ended().len());
                return;
            }
            self.switch_to_screen();
        }
        if let Some(screen) = &mut self.screen {
            let is_affordable = self.budget.spend(&function, self.size);
            if !is_affordable || !self.budget.has_room(self.text.len()) {
                self.is_given_up = true;
                return;
            }
            let is_line_end = function == Function::Lf;
            screen.apply(function, &mut self.text);
            if is_line_end && screen.needs_only_lines() {
                self.lines = Some(Lines::new(usize::from(self.size.columns), self.colours));
            }
        }
    }

    fn switch_to_screen(&mut self) {
        self.lacks_screen = !self.may_have_screen;
        if let (Some(lines), true) = (self.lines.take(), self.may_have_screen) {
            let new = || Screen::new(self.size, self.colours);
            self.screen.get_or_insert_with(new).print_lines(&lines, &mut self.text);
        }
    }
}
