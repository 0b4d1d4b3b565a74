//! The stream of an export whose entries are being read.

use super::super::chain::Chain;
use super::super::walk::Walk;
use super::super::{How, Problem, VerifiedCounts};
use crate::record::rows::{HeadRow, InstanceRow, TaskRow};
use wrkflw_core::audit::{Stream, StreamKind};

/// The stream that is open, if one is.
pub(super) enum Open<'a> {
    None,
    Instance {
        row: Box<InstanceRow>,
        tasks: Vec<TaskRow>,
        walk: Box<Walk<'a>>,
    },
    Stream {
        stream: Stream,
        chain: Chain,
        head: Option<HeadRow>,
    },
}

impl<'a> Open<'a> {
    /// Ends it. Returns the stream with the problems that only its end shows.
    pub(super) async fn end(
        self,
        how: How<'a>,
        tally: &mut VerifiedCounts,
    ) -> Option<(Stream, Vec<Problem>)> {
        let mut problems = Vec::new();
        let stream = match self {
            Open::None => return None,
            Open::Instance { row, tasks, walk } => {
                let (stream, tasks) = (walk.stream(), tasks.iter().collect::<Vec<_>>());
                walk.end(((&row, &tasks), None), how.seals, tally, &mut problems)
                    .await;
                stream
            }
            Open::Stream {
                stream,
                chain,
                head,
            } => {
                // The row of an instance has its head. Without the row, there is nothing to compare with its entries.
                let head = head.filter(|_| stream.kind != StreamKind::Instance);
                chain.end(head.as_ref(), &mut problems);
                tally.streams += 1;
                stream
            }
        };
        Some((stream, problems))
    }
}
