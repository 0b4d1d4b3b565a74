//! The approximate size of a message: its JSON without escapes.
//!
//! Every question and answer is measured, so this neither serializes nor scans text. A text counts with its length, a number with
//! a usual size, and names and punctuation as in JSON.

use std::fmt::Error;

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// A number.
const NUMBER_BYTES: usize = 8;
/// A literal: `true`, `false`, `null`.
const LITERAL_BYTES: usize = 5;
/// An item of a list of bytes.
const BYTE_BYTES: usize = 3;
/// Two quotes, or two brackets.
const PAIR_BYTES: usize = 2;
/// A colon or a comma.
const MARK_BYTES: usize = 1;

/// The approximate size of a message.
pub(super) fn size(message: &impl Serialize) -> usize {
    let mut tally = SizeCounter(0);
    // The contract's types serialise, so only the sum can fail.
    message
        .serialize(&mut tally)
        .map_or(usize::MAX, |()| tally.0)
}

struct SizeCounter(usize);

impl SizeCounter {
    fn add(&mut self, bytes: usize) -> Result<(), Error> {
        self.0 = self.0.checked_add(bytes).ok_or(Error)?;
        Ok(())
    }

    fn named(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.add(name.len() + PAIR_BYTES + MARK_BYTES)?;
        self.item(value)
    }

    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.add(MARK_BYTES)?;
        value.serialize(self)
    }
}

macro_rules! numbers {
    ($($method:ident: $number:ty),*) => {$(
        fn $method(self, _: $number) -> Result<(), Error> {
            self.add(NUMBER_BYTES)
        }
    )*};
}

impl<'a> Serializer for &'a mut SizeCounter {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = &'a mut SizeCounter;
    type SerializeTuple = &'a mut SizeCounter;
    type SerializeTupleStruct = &'a mut SizeCounter;
    type SerializeTupleVariant = &'a mut SizeCounter;
    type SerializeMap = &'a mut SizeCounter;
    type SerializeStruct = &'a mut SizeCounter;
    type SerializeStructVariant = &'a mut SizeCounter;

    numbers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    numbers!(serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);
    numbers!(serialize_f32: f32, serialize_f64: f64);

    fn serialize_u8(self, _: u8) -> Result<(), Error> {
        self.add(BYTE_BYTES)
    }

    fn serialize_bool(self, _: bool) -> Result<(), Error> {
        self.add(LITERAL_BYTES)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.add(value.len_utf8() + PAIR_BYTES)
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.add(value.len() + PAIR_BYTES)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.add(value.len().saturating_mul(BYTE_BYTES + MARK_BYTES))
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.add(LITERAL_BYTES)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.add(LITERAL_BYTES)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.add(LITERAL_BYTES)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.add(variant.len() + PAIR_BYTES)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.add(PAIR_BYTES)?;
        self.named(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        self.add(PAIR_BYTES)?;
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        self.add(PAIR_BYTES)?;
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        self.add(PAIR_BYTES)?;
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        self.add(variant.len() + 3 * PAIR_BYTES)?;
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        self.add(PAIR_BYTES)?;
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        self.add(PAIR_BYTES)?;
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        self.add(variant.len() + 3 * PAIR_BYTES)?;
        Ok(self)
    }
}

/// Implements serializers of lists.
macro_rules! lists {
    ($($kind:ident: $method:ident),*) => {$(
        impl $kind for &mut SizeCounter {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )*};
}

/// Implements serializers of named values.
macro_rules! fields {
    ($($kind:ident),*) => {$(
        impl $kind for &mut SizeCounter {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.named(name, value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )*};
}

lists!(SerializeSeq: serialize_element, SerializeTuple: serialize_element);
lists!(SerializeTupleStruct: serialize_field, SerializeTupleVariant: serialize_field);
fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for &mut SizeCounter {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.item(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
