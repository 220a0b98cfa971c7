//! A message as a plain Rust tree: for tests, benches and fuzzing, and for callers that are not Python.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;

use super::{Schema, Sink, Source};

/// A value of any kind.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is named after its kind")]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Tags(BTreeMap<u32, Vec<u8>>),
    Struct(BTreeMap<String, Value>),
}

/// Reads and makes [`Value`]s of one schema.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'s> {
    /// Its slots' names.
    pub schema: &'s Schema,
    /// The bytes being decoded, so that records can be taken out of them.
    pub data: &'s [u8],
}

impl Sink for Shape<'_> {
    type Value = Value;
    type List = Vec<Value>;
    type Struct = BTreeMap<String, Value>;
    type Failure = Infallible;

    fn null(&mut self) -> Value {
        Value::Null
    }
    fn boolean(&mut self, value: bool) -> Value {
        Value::Bool(value)
    }
    fn integer(&mut self, value: i64) -> Value {
        Value::Int(value)
    }
    fn float(&mut self, value: f64) -> Value {
        Value::Float(value)
    }
    fn text(&mut self, value: &str) -> Value {
        Value::Text(value.to_owned())
    }
    fn bytes(&mut self, value: &[u8]) -> Value {
        Value::Bytes(value.to_owned())
    }
    fn records(&mut self, place: Range<usize>) -> Result<Value, Infallible> {
        Ok(Value::Bytes(self.data[place].to_owned()))
    }
    fn tags(&mut self, tags: &[(u32, &[u8])]) -> Result<Value, Infallible> {
        Ok(Value::Tags(tags.iter().map(|(tag, body)| (*tag, (*body).to_owned())).collect()))
    }
    fn open_list(&mut self, count: usize) -> Vec<Value> {
        Vec::with_capacity(count.min(64))
    }
    fn push(&mut self, list: &mut Vec<Value>, value: Value) -> Result<(), Infallible> {
        list.push(value);
        Ok(())
    }
    fn close_list(&mut self, list: Vec<Value>) -> Value {
        Value::List(list)
    }
    fn open(&mut self) -> Self::Struct {
        BTreeMap::new()
    }
    fn set(&mut self, to: &mut Self::Struct, slot: usize, value: Value) -> Result<(), Infallible> {
        to.insert(self.schema.names()[slot].clone(), value);
        Ok(())
    }
    fn close(&mut self, whole: Self::Struct) -> Value {
        Value::Struct(whole)
    }
}

macro_rules! give {
    ($value:expr, $pattern:pat => $result:expr) => {
        Ok(if let $pattern = $value { Some($result) } else { None })
    };
}

impl Source for Shape<'_> {
    type Value = Value;
    type Struct = BTreeMap<String, Value>;
    type Lent = Vec<u8>;
    type Failure = Infallible;

    fn is_null(&self, value: &Value) -> bool {
        *value == Value::Null
    }
    fn boolean(&self, value: &Value) -> Result<Option<bool>, Infallible> {
        give!(value, Value::Bool(value) => *value)
    }
    fn integer(&self, value: &Value) -> Result<Option<i64>, Infallible> {
        give!(value, Value::Int(value) => *value)
    }
    fn float(&self, value: &Value) -> Result<Option<f64>, Infallible> {
        give!(value, Value::Float(value) => *value)
    }
    fn text<'v>(&self, value: &'v Value) -> Result<Option<&'v str>, Infallible> {
        give!(value, Value::Text(value) => value)
    }
    fn bytes(&self, value: &Value) -> Result<Option<Vec<u8>>, Infallible> {
        give!(value, Value::Bytes(value) => value.clone())
    }
    fn records(&self, value: &Value) -> Result<Option<Vec<Vec<u8>>>, Infallible> {
        give!(value, Value::Bytes(value) => vec![value.clone()])
    }
    fn tags(&self, value: &Value) -> Result<Option<Vec<(u32, Vec<u8>)>>, Infallible> {
        give!(value, Value::Tags(tags) => tags.iter().map(|(tag, body)| (*tag, body.clone())).collect())
    }
    fn items(&self, value: &Value) -> Result<Option<Vec<Value>>, Infallible> {
        give!(value, Value::List(items) => items.clone())
    }
    fn open(&self, value: &Value) -> Result<Option<Self::Struct>, Infallible> {
        give!(value, Value::Struct(fields) => fields.clone())
    }
    fn field(&self, of: &Self::Struct, slot: usize, _: Option<usize>) -> Result<Option<Value>, Infallible> {
        Ok(of.get(&self.schema.names()[slot]).cloned())
    }
    fn size(&self, of: &Self::Struct) -> usize {
        of.len()
    }
    fn stranger(&self, of: &Self::Struct, slots: &[usize]) -> Result<Option<String>, Infallible> {
        let names = self.schema.names();
        Ok(of.keys().find(|key| !slots.iter().any(|slot| names[*slot] == **key)).cloned())
    }
}
