//! The implementation of serde's serializer. It maps values to JSON as `serde_json` does.

use std::fmt::{Display, Write as _};

use serde::ser::{
    self, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant,
};

use super::{Items, Unfit, Writer};
use crate::json::RAW;
use crate::json::canonical::is_plain;

macro_rules! shown {
    ($($function:ident: $type:ty),+ $(,)?) => {$(
        fn $function(self, value: $type) -> Result<(), Unfit> {
            Ok(write!(self.out, "{value}")?)
        }
    )+};
}

impl<'w> ser::Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Unfit;
    type SerializeSeq = Items<'w>;
    type SerializeTuple = Items<'w>;
    type SerializeTupleStruct = Items<'w>;
    type SerializeTupleVariant = Items<'w>;
    type SerializeMap = Items<'w>;
    type SerializeStruct = Fields<'w>;
    type SerializeStructVariant = Items<'w>;

    shown! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128,
    }

    fn serialize_f32(self, value: f32) -> Result<(), Unfit> {
        let text = serde_json::to_string(&value).map_err(<Unfit as ser::Error>::custom)?;
        self.out.push_str(&text);
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Unfit> {
        let text = serde_json::to_string(&value).map_err(<Unfit as ser::Error>::custom)?;
        self.out.push_str(&text);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Unfit> {
        self.string(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Unfit> {
        self.string(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Unfit> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Unfit> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unfit> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unfit> {
        self.out.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Unfit> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Unfit> {
        self.string(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        self.variant(variant)?;
        value.serialize(&mut *self)?;
        self.variant_ends();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'w>, Unfit> {
        self.open('[')
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'w>, Unfit> {
        self.open('[')
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'w>, Unfit> {
        self.open('[')
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'w>, Unfit> {
        self.variant(variant)?;
        let mut items = self.open('[')?;
        items.is_variant = true;
        Ok(items)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Items<'w>, Unfit> {
        self.open('{')
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'w>, Unfit> {
        Ok(if name == RAW {
            Fields::Raw(self)
        } else {
            Fields::Named(self.open('{')?)
        })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'w>, Unfit> {
        self.variant(variant)?;
        let mut items = self.open('{')?;
        items.is_variant = true;
        Ok(items)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Unfit> {
        self.out.push('"');
        let begin = self.out.len();
        write!(self.out, "{value}")?;
        if is_plain(&self.out[begin..]) {
            self.out.push('"');
            return Ok(());
        }
        let text = self.out.split_off(begin);
        self.out.pop();
        self.string(&text)
    }
}

/// The members of a struct, or a value that is canonical JSON text already.
pub(super) enum Fields<'w> {
    Named(Items<'w>),
    Raw(&'w mut Writer),
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Unfit;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        match self {
            Fields::Named(items) => items.member(name, value),
            Fields::Raw(writer) => {
                writer.is_raw = true;
                value.serialize(&mut **writer)?;
                writer.is_raw = false;
                Ok(())
            }
        }
    }

    fn end(self) -> Result<(), Unfit> {
        match self {
            Fields::Named(items) => items.close_object(),
            Fields::Raw(_) => Ok(()),
        }
    }
}

macro_rules! arrays {
    ($($trait:ident: $function:ident),+ $(,)?) => {$(
        impl $trait for Items<'_> {
            type Ok = ();
            type Error = Unfit;

            fn $function<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
                self.item(value)
            }

            fn end(self) -> Result<(), Unfit> {
                self.close(']');
                Ok(())
            }
        }
    )+};
}

arrays! {
    SerializeSeq: serialize_element, SerializeTuple: serialize_element, SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

impl SerializeStructVariant for Items<'_> {
    type Ok = ();
    type Error = Unfit;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        self.member(name, value)
    }

    fn end(self) -> Result<(), Unfit> {
        self.close_object()
    }
}

impl SerializeMap for Items<'_> {
    type Ok = ();
    type Error = Unfit;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unfit> {
        self.name(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        self.value(value)
    }

    fn end(self) -> Result<(), Unfit> {
        self.close_object()
    }
}
