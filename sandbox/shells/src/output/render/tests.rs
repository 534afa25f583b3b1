//! Tests of rendering, and that all paths of the renderer show the same.

use avt::Terminal;
use proptest::prelude::*;

use super::*;

const SIZE: Size = Size { columns: 10, rows: 4 };

fn check(output: &str, plain: &str) {
    assert_eq!(render(output.as_bytes(), SIZE, Colours::Strip), plain, "{output:?}");
}

#[test]
fn shows_what_a_terminal_would() {
    check("a\r\nb\r\n", "a\nb");
    check("10%\r50%\r100%\r\ndone", "100%\ndone");
    check("abc\x1b[2DX", "aXc");
    check("\x1b[31mred\x1b[0m plain", "red plain");
    check("0123456789abcde\r\nx", "0123456789abcde\nx");
    check("1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n", "1\n2\n3\n4\n5\n6");
    check("  indented  \r\n\r\n", "  indented");
    check("日本\r\n", "日本");
    // Queries to the terminal: its cursor, its type, its colours.
    check("a\x1b[6nb\x1b[c\x1b]11;?\x07c\x1b[>q", "abc");
}

#[test]
fn colours_are_kept_on_request() {
    let output = b"a\x1b[1;31mred\x1b[0m b\r\n\x1b[38;5;200mx";
    let text = render(output, SIZE, Colours::Keep);
    assert_eq!(text, "a\x1b[0;1;31mred\x1b[0m b\n\x1b[0;38;5;200mx\x1b[0m");
}

#[test]
fn however_long_output_is_all_of_it_is_shown() {
    let seq = |last: u32| (1..=last).fold(String::new(), |text, n| text + &format!("{n}\r\n"));
    for (columns, rows) in [(10, 4), (1000, 200)] {
        let size = Size { columns, rows };
        let output = seq(200_000) + "x\r\n\x1b[1Ay\r\n" + &seq(30_000);
        let text = render(output.as_bytes(), size, Colours::Strip);
        let expected = (seq(200_000) + "y\r\n" + &seq(30_000)).replace('\r', "");
        assert!(text == expected.trim_end(), "{} bytes of {}", text.len(), expected.len());
    }
}

#[test]
fn a_program_can_clear_the_terminal() {
    check("gone\r\n\x1b[H\x1b[2J\x1b[3Jleft\r\n", "left");
    check("1\r\n2\r\n3\r\n4\r\n5\r\n\x1b[3J6", "3\n4\n5\n6");
    // A reset does not discard output: binary output can contain one.
    check("1\r\n2\r\n3\r\n4\r\n5\r\n\x1bc6", "1\n2\n3\n4\n5\n6");
}

#[test]
fn a_full_screen_program_is_shown_while_it_runs() {
    check("1\r\n\x1b[?1049h\x1b[Hfull", "1\nfull");
    check("1\r\n\x1b[?1049h\x1b[Hfull\x1b[?1049lback", "1\nback");
}

#[test]
fn plain_lines_are_shown_without_a_screen() {
    let lines = |output: &str| render_lines(output.as_bytes(), SIZE, Colours::Strip);
    assert_eq!(lines("10%\r100%\r\n\x1b[31mred\x1b[0m\ta\r\n").as_deref(), Some("100%\nred     a"));
    assert_eq!(lines("0123456789abc\r\n日本\r\n").as_deref(), Some("0123456789abc\n日本"));
    assert_eq!(lines("a\r\n\x1b[1Ab"), None);
}

#[tokio::test]
async fn only_few_render_at_the_same_time() {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    let running = Arc::new(AtomicUsize::new(0));
    let work = (0..20).map(|_| {
        let running = Arc::clone(&running);
        tokio::spawn(render_in_background(move || {
            let beside = running.fetch_add(1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            beside
        }))
    });
    for one in work.collect::<Vec<_>>() {
        assert!(one.await.unwrap() < 2);
    }
}

/// The output as an emulator shows it that keeps all rows.
fn emulate(output: &str, size: Size, colours: Colours) -> String {
    let (columns, rows) = (usize::from(size.columns), usize::from(size.rows));
    let mut terminal = Terminal::with_scrollback(columns, rows, None).unwrap();
    let mut parser = Parser::new();
    for function in output.chars().filter_map(|character| parser.feed(character)) {
        if colours == Colours::Keep || !matches!(function, Function::Sgr(_)) {
            terminal.execute(function);
        }
    }
    let mut text = Text::new(colours);
    text.push_rows(terminal.primary_screen().all_lines());
    if terminal.active_screen_kind() == avt::ScreenKind::Alternate {
        text.start_line();
        text.push_rows(terminal.screen().all_lines());
    }
    text.finish()
}

/// Generates output and control sequences.
fn piece() -> impl Strategy<Value = String> {
    let texts = ["a", "word", " ", "    ", "日", "é", "┃", "0123456789", "\u{301}"];
    let controls = ["\r", "\n", "\r\n", "\t", "\x08", "\x0e", "\x0f", "\x0b"];
    let escapes = [
        "\x1b7",
        "\x1b8",
        "\x1bM",
        "\x1bD",
        "\x1bE",
        "\x1bH",
        "\x1b(0",
        "\x1b(B",
        "\x1b)0",
        "\x1b=",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[20h",
        "\x1b[?6h",
        "\x1b[?25l",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[2;3r",
        "\x1b[r",
        "\x1b[31m",
        "\x1b[44m",
        "\x1b[m",
        "\x1b[2J",
        "\x1b[1J",
        "\x1b[g",
        "\x1b[s",
        "\x1b[u",
        "\x1b[!p",
        "\x1b]0;title\x07",
        "\x1b[6n",
    ];
    let moves = (0_u8..12, prop::sample::select(b"ABCDEFGHIJKLMPSTXZ@`abdef".to_vec()))
        .prop_filter("discards output", |(count, letter)| (*count, *letter) != (3, b'J'))
        .prop_map(|(count, letter)| format!("\x1b[{count}{}", char::from(letter)));
    prop_oneof![
        6 => prop::sample::select(texts.to_vec()).prop_map(String::from),
        4 => prop::sample::select(controls.to_vec()).prop_map(String::from),
        1 => prop::sample::select(escapes.to_vec()).prop_map(String::from),
        2 => moves,
        // Enough lines to switch back from the screen to plain lines.
        2 => (1_usize..60, "[a-z \t日]{0,14}").prop_map(|(n, line)| format!("{line}\r\n").repeat(n)),
    ]
}

fn output() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

fn sizes() -> impl Strategy<Value = Size> {
    (1_u16..20, 1_u16..9).prop_map(|(columns, rows)| Size { columns, rows })
}

fn either() -> impl Strategy<Value = Colours> {
    prop_oneof![Just(Colours::Strip), Just(Colours::Keep)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_fast_paths_show_what_the_emulator_shows(
        output in output(), size in sizes(), colours in either()
    ) {
        let shown = render(output.as_bytes(), size, colours);
        prop_assert_eq!(shown, emulate(&output, size, colours));
    }

    #[test]
    fn pieces_of_any_size_show_the_same(
        output in prop::collection::vec(prop_oneof![
            4 => piece().prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>(), 0..5),
        ], 0..30),
        size in sizes(),
        length in 1_usize..9,
    ) {
        let output = output.concat();
        let mut renderer = Renderer::new(size, Colours::Strip);
        output.chunks(length).for_each(|piece| renderer.feed(piece));
        let whole = render(&output, size, Colours::Strip);
        prop_assert_eq!(&renderer.finish(), &whole);
        let lossy = String::from_utf8_lossy(&output);
        prop_assert_eq!(render(lossy.as_bytes(), size, Colours::Strip), whole);
    }

    #[test]
    fn a_cursor_move_anywhere_loses_no_line(
        before in 0_u32..3000, after in 0_u32..3000, columns in 5_u16..20, rows in 2_u16..9,
    ) {
        let size = Size { columns, rows };
        let seq = |range: std::ops::Range<u32>| {
            range.fold(String::new(), |text, n| text + &format!("{n}\r\n"))
        };
        let output = seq(0..before) + "x\r\n\x1b[1Ay\r\n" + &seq(before..before + after);
        let expected = (seq(0..before) + "y\r\n" + &seq(before..before + after)).replace('\r', "");
        let text = render(output.as_bytes(), size, Colours::Strip);
        prop_assert_eq!(text, expected.trim_end());
    }
}

/// A few bytes can repeat a character 65,535 times, fill a row or clear the screen.
#[test]
fn output_that_draws_too_much_is_given_up() {
    let size = Size::LARGEST;
    let shown = |output: &str| {
        let mut renderer = Renderer::new(size, Colours::Strip);
        renderer.budget = Budget::of_cells(20_000_000);
        renderer.feed(output.as_bytes());
        renderer.finish()
    };
    let repeated = "x\x1b[65535b".repeat(1000);
    let moved = "\x1b[999Cx\n".repeat(80_000);
    let cleared = "\x1b[1;1H\x1b[J".repeat(100);
    for output in [repeated, moved, cleared] {
        let text = shown(&output);
        assert!(text.ends_with("it draws too much: get it with shell/read and raw]"));
        assert!(text.len() < 80 << 20, "{} bytes", text.len());
    }
    assert!(shown(&"\x1b[2J\x1b[Hframe".repeat(10)).ends_with("frame"));
}
