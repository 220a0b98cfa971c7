//! Topics made and removed over the wire, so that a run needs no other tool.

use crate::Outcome;
use crate::connection::Connection;
use crate::requests::{begin, end, no_error, one};

const CREATE_TOPICS: (i16, i16) = (19, 4);
const DELETE_TOPICS: (i16, i16) = (20, 3);
const CREATE_PARTITIONS: (i16, i16) = (37, 1);

/// Create one topic with one replica; a topic that exists already is an error.
pub fn create_topic(
    connection: &mut Connection,
    topic: &str,
    partitions: i32,
    configs: &[(String, String)],
) -> Outcome<()> {
    let correlation = connection.next_correlation();
    let mut request = begin(CREATE_TOPICS, correlation, false);
    request.int32(1);
    request.string(topic);
    request.int32(partitions);
    request.int16(1);
    request.int32(0); // no manual assignment
    request.int32(configs.len() as i32);
    for (name, value) in configs {
        request.string(name);
        request.string(value);
    }
    request.int32(60_000);
    request.int8(0);
    let mut answer = connection.ask(&end(request, 0), correlation)?;
    answer.int32()?; // throttle time
    one(u64::from(answer.int32()? as u32))?;
    answer.string()?;
    let code = answer.int16()?;
    let message = String::from_utf8_lossy(answer.string()?).into_owned();
    no_error("CreateTopics", code).map_err(|error| format!("{error} {message}").into())
}

/// Raise the number of partitions to `partitions` in all.
pub fn create_partitions(connection: &mut Connection, topic: &str, partitions: i32) -> Outcome<()> {
    let correlation = connection.next_correlation();
    let mut request = begin(CREATE_PARTITIONS, correlation, false);
    request.int32(1);
    request.string(topic);
    request.int32(partitions);
    request.int32(-1); // no manual assignment
    request.int32(60_000);
    request.int8(0);
    let mut answer = connection.ask(&end(request, 0), correlation)?;
    answer.int32()?; // throttle time
    one(u64::from(answer.int32()? as u32))?;
    answer.string()?;
    let code = answer.int16()?;
    let message = String::from_utf8_lossy(answer.string()?).into_owned();
    no_error("CreatePartitions", code).map_err(|error| format!("{error} {message}").into())
}

/// Delete one topic.
pub fn delete_topic(connection: &mut Connection, topic: &str) -> Outcome<()> {
    let correlation = connection.next_correlation();
    let mut request = begin(DELETE_TOPICS, correlation, false);
    request.int32(1);
    request.string(topic);
    request.int32(60_000);
    let mut answer = connection.ask(&end(request, 0), correlation)?;
    answer.int32()?; // throttle time
    one(u64::from(answer.int32()? as u32))?;
    answer.string()?;
    no_error("DeleteTopics", answer.int16()?)
}
