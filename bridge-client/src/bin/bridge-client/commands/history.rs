//! `history CONVERSATION`: who said what, oldest first.

use bridge_protocol::methods::{ChatMessage, ChatRole, GetChatHistory, GetChatHistoryParams};

use super::{Context, typed};
use crate::cli::History;
use crate::failure::Failure;
use crate::output::{self, Style};
use crate::utc::Utc;

pub async fn run(mut context: Context, arguments: History) -> Result<(), Failure> {
    let params =
        GetChatHistoryParams { conversation_id: arguments.conversation, limit: arguments.limit };
    let result = context.call::<GetChatHistory>(&params).await?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    let messages = typed::<GetChatHistory>(&result)?.messages;
    for message in &messages {
        context.output.line(&shown(message)).await?;
    }
    if messages.is_empty() {
        output::note("(nothing was said in this conversation, or the host does not know it)");
    }
    Ok(())
}

fn shown(message: &ChatMessage) -> String {
    let who = match message.role {
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
    };
    format!("{} {who}: {}", Utc(message.timestamp), message.content)
}
