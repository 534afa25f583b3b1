//! `chat MESSAGE`: asks the host's language model.
//!
//! On a terminal the text appears as it arrives. The daemon may drop pieces for a slow reader, but the answer is
//! complete, so the text that was shown is compared with it at the end.

use std::pin::pin;

use bridge_client::Call;
use bridge_protocol::methods::{
    Chat as ChatMethod, ChatParams, ChatResult, MethodType, TextProgress,
};
use serde_json::value::RawValue;
use tokio::signal::ctrl_c;
use tokio::time::timeout;

use super::{CANCEL_WAIT, Context, answer, typed};
use crate::cli::Chat;
use crate::failure::Failure;
use crate::output::{self, Output, Style};
use crate::params;

pub async fn run(mut context: Context, arguments: Chat) -> Result<(), Failure> {
    let message = match &*arguments.message {
        // The final line end is not part of the question.
        "-" => params::read_stdin()?.trim_end_matches(['\n', '\r']).to_owned(),
        _ => arguments.message,
    };
    let params = ChatParams {
        message,
        timeout: None,
        model: arguments.model,
        conversation_id: arguments.conversation,
    };
    let params = context.route.added_to(&params);
    let client = context.client().await?;
    let mut call = client.call_raw(ChatMethod::NAME, Some(params), context.timeout);
    let mut shown = String::new();
    let mut result = Ok(());
    if context.output.style == Style::Terminal {
        result = show_pieces(&mut call, &mut context.output, &mut shown).await;
    }
    let result = match result {
        Ok(()) => answer(call).await,
        Err(failure) => Err(failure),
    };
    client.close().await;
    if result.is_err() && !shown.is_empty() {
        // The error message must not follow half an answer on the same line.
        context.output.line("").await?;
    }
    finish(&mut context.output, &shown, &result?).await
}

/// Prints text as it arrives, until there is no more.
async fn show_pieces(
    call: &mut Call<Box<RawValue>>,
    output: &mut Output,
    shown: &mut String,
) -> Result<(), Failure> {
    let mut interrupt = pin!(ctrl_c());
    loop {
        let piece = tokio::select! {
            piece = call.progress() => piece,
            _ = &mut interrupt => {
                call.cancel();
                let confirmed = async { while call.progress().await.is_some() {} };
                // Whether the daemon confirms or not, the person has interrupted the chat.
                let _ = timeout(CANCEL_WAIT, confirmed).await;
                return Err(Failure::Interrupted);
            }
        };
        let Some(piece) = piece else { return Ok(()) };
        if let Ok(TextProgress { text }) = serde_json::from_str(piece.get()) {
            output.piece(&text).await?;
            shown.push_str(&text);
        }
    }
}

async fn finish(output: &mut Output, shown: &str, result: &RawValue) -> Result<(), Failure> {
    let answer = typed::<ChatMethod>(result)?;
    if output.style == Style::Json {
        output.json(result).await?;
    } else if !answer.response.is_empty() || !shown.is_empty() {
        output.line(&remainder(shown, &answer.response)).await?;
    }
    if answer.blocked {
        return Err(Failure::Blocked(why_blocked(&answer)));
    }
    if let (Style::Terminal, Some(id)) = (output.style, &answer.conversation_id) {
        output::note(&format!("(go on with --conversation {id})"));
    }
    Ok(())
}

/// The part of the answer that has not been shown yet. If the shown text is not the beginning of the answer, the whole
/// answer on a new line.
fn remainder(shown: &str, response: &str) -> String {
    match response.strip_prefix(shown) {
        Some(rest) => rest.to_owned(),
        None => format!("\n{response}"),
    }
}

/// Explains why no model answered. The host's reason is a word for programs, or a sentence that also says what to do.
fn why_blocked(answer: &ChatResult) -> String {
    let reason = answer.blocked_reason.as_deref().unwrap_or("no reason given");
    let remedy = match reason {
        "refusal" | "off_topic" => " (ask in other words)",
        "consent" => " (allow it in the editor, then ask again)",
        "no_model" => {
            " (sign in to a model in the editor, or start the run with `bridge-daemon run --chat-command CMD`)"
        }
        _ => "",
    };
    let opened = if answer.opened_chat { "; a chat was opened there instead" } else { "" };
    format!("the host did not answer: {reason}{remedy}{opened}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_streamed_is_not_printed_twice() {
        assert_eq!(remainder("", "2, 3"), "2, 3");
        assert_eq!(remainder("2, ", "2, 3"), "3");
        assert_eq!(remainder("2, 3", "2, 3"), "");
        assert_eq!(remainder("2, x", "2, 3"), "\n2, 3");
    }

    #[test]
    fn a_block_names_reason_and_remedy() {
        let blocked = |reason: Option<&str>, opened_chat| {
            let blocked_reason = reason.map(str::to_owned);
            why_blocked(&ChatResult {
                blocked: true,
                blocked_reason,
                opened_chat,
                ..ChatResult::default()
            })
        };
        assert!(blocked(Some("no_model"), false).contains("--chat-command"));
        assert_eq!(
            blocked(Some("too hot: wait for the evening"), false),
            "the host did not answer: too hot: wait for the evening"
        );
        assert!(blocked(None, true).contains("a chat was opened"));
    }
}
