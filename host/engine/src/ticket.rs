//! The receiving end of a job.

use std::sync::mpsc::Sender;

use jackfield_scheduler::RequestId;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::job::Output;
use crate::worker::Command;

/// The receiving end of one job. Dropping it cancels the job, wherever it is.
#[derive(Debug)]
pub struct Ticket {
    pub(crate) id: RequestId,
    pub(crate) inbox: Sender<Command>,
    pub(crate) outputs: UnboundedReceiver<Output>,
    pub(crate) done: bool,
}

impl Ticket {
    /// The next output; none after `Done` or `Failed`.
    pub async fn next(&mut self) -> Option<Output> {
        if self.done {
            return None;
        }
        let output = self.outputs.recv().await;
        self.done = matches!(output, None | Some(Output::Done(_) | Output::Failed(_)));
        output
    }
}

impl Ticket {
    /// Gives one choice up; the others go on. Its blocks are free before the next step, it has no `Finished`, and what
    /// it had said until then is in the usage, which comes as always when the last choice has ended. A choice that has
    /// ended already, or never was, changes nothing.
    pub fn cancel_choice(&self, choice: u32) {
        if !self.done {
            // As with the whole job: an engine that is gone has nothing left to cancel.
            let _ = self.inbox.send(Command::CancelChoice(self.id, choice));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.done {
            // An engine that is gone has nothing left to cancel.
            let _ = self.inbox.send(Command::Cancel(self.id));
        }
    }
}
