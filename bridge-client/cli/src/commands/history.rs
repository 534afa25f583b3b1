//! `history CONVERSATION`: prints the messages of a conversation, oldest first.

use bridge_protocol::methods::{ChatMessage, ChatRole, GetChatHistory, GetChatHistoryParams};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Context, typed};
use crate::cli::History;
use crate::failure::Failure;
use crate::output::{self, Style};

pub async fn run(mut context: Context, arguments: History) -> Result<(), Failure> {
    let params =
        GetChatHistoryParams { conversation_id: arguments.conversation, limit: arguments.limit };
    let result = context.call::<GetChatHistory>(&params).await?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    let messages = typed::<GetChatHistory>(&result)?.messages;
    let here = TimeZone::system();
    for message in &messages {
        context.output.line(&shown(message, &here)).await?;
    }
    if messages.is_empty() {
        output::note("(this conversation has no messages, or the host does not know it)");
    }
    Ok(())
}

fn shown(message: &ChatMessage, here: &TimeZone) -> String {
    let who = match message.role {
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
    };
    let said = i64::try_from(message.timestamp).unwrap_or(i64::MAX);
    let when = Timestamp::from_millisecond(said).unwrap_or(Timestamp::MAX).to_zoned(here.clone());
    format!("{} {who}: {}", when.strftime("%F %T"), message.content)
}
