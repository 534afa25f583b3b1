//! The messages of each conversation.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bridge_protocol::methods::{ChatMessage, ChatRole, GetChatHistoryParams, GetChatHistoryResult};

/// How many conversations are kept. Beyond that, the one that was not used for the longest time is dropped.
const CONVERSATIONS: usize = 256;
/// How many messages of each conversation are kept. Beyond that, the oldest are dropped.
const MESSAGES: usize = 200;
/// How many bytes of all conversations are kept. Beyond that, conversations that were not used for the longest time are
/// dropped; of the last one, its oldest messages.
const BYTES: usize = 4 << 20;
/// How many messages are returned when the caller gives no limit.
const DEFAULT_LIMIT: usize = 10;

/// All conversations of this run.
#[derive(Debug, Default)]
pub struct History {
    drawn: AtomicU64,
    conversations: Mutex<HashMap<String, Conversation>>,
}

#[derive(Debug, Default)]
struct Conversation {
    messages: Vec<ChatMessage>,
    touched: u64,
}

impl History {
    /// Makes up an id that no conversation has.
    pub fn draw_id(&self) -> String {
        format!("conversation-{}", self.next())
    }

    /// Adds a question and its answer.
    pub fn add(&self, conversation: &str, question: String, answer: String) {
        let touched = self.next();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let timestamp = now.as_millis() as u64;
        let mut all = self.conversations.lock().expect("no holder of this lock panics");
        let entry = all.entry(conversation.to_owned()).or_default();
        entry.touched = touched;
        entry.messages.push(ChatMessage { role: ChatRole::User, content: question, timestamp });
        entry.messages.push(ChatMessage { role: ChatRole::Assistant, content: answer, timestamp });
        let surplus = entry.messages.len().saturating_sub(MESSAGES);
        entry.messages.drain(..surplus);
        let surplus =
            (0..entry.messages.len()).find(|kept| bytes(&entry.messages[*kept..]) <= BYTES);
        entry.messages.drain(..surplus.unwrap_or(entry.messages.len()));
        while all.len() > CONVERSATIONS
            || all.values().map(|entry| bytes(&entry.messages)).sum::<usize>() > BYTES
        {
            let oldest = all.iter().min_by_key(|(_, entry)| entry.touched);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { break };
            all.remove(&oldest);
        }
    }

    /// The newest messages of a conversation, oldest first. Empty if the conversation is unknown.
    pub fn read(&self, params: &GetChatHistoryParams) -> GetChatHistoryResult {
        let all = self.conversations.lock().expect("no holder of this lock panics");
        let messages = all.get(&params.conversation_id).map_or(&[][..], |entry| &entry.messages);
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
        let newest = messages.len().saturating_sub(limit);
        GetChatHistoryResult { messages: messages[newest..].to_vec() }
    }

    fn next(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn bytes(messages: &[ChatMessage]) -> usize {
    messages.iter().map(|message| message.content.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(history: &History, id: &str, limit: Option<usize>) -> Vec<String> {
        let params = GetChatHistoryParams { conversation_id: id.to_owned(), limit };
        history.read(&params).messages.into_iter().map(|message| message.content).collect()
    }

    #[test]
    fn the_newest_messages_come_oldest_first() {
        let history = History::default();
        for n in 0..6 {
            history.add("a", format!("q{n}"), format!("a{n}"));
        }
        assert_eq!(read(&history, "a", Some(3)), ["a4", "q5", "a5"]);
        assert_eq!(read(&history, "a", None).len(), DEFAULT_LIMIT);
        assert!(read(&history, "unknown", None).is_empty());
    }

    #[test]
    fn it_is_bounded_in_both_directions() {
        let history = History::default();
        for n in 0..MESSAGES {
            history.add("long", format!("{n}"), String::new());
        }
        assert_eq!(read(&history, "long", Some(usize::MAX)).len(), MESSAGES);
        for n in 0..CONVERSATIONS {
            history.add(&format!("c{n}"), "q".into(), "a".into());
        }
        assert!(read(&history, "long", None).is_empty(), "rested longest");
        assert_eq!(read(&history, "c0", None).len(), 2);
        let half = "x".repeat(BYTES / 2 - 1);
        history.add("a", half.clone(), String::new());
        history.add("b", half.clone(), String::new());
        history.add("b", half.clone(), "last".into());
        assert!(read(&history, "a", None).is_empty(), "no room beside it");
        assert_eq!(read(&history, "b", None).last().unwrap(), "last");
        assert!(read(&history, "b", None).len() < 4);
    }
}
