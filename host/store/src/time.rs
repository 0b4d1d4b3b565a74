//! Timestamps as PostgreSQL stores them: microseconds since the year 2000, in `timestamptz`.

use jiff::Timestamp;
use serde::Deserialize;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

/// 2000-01-01T00:00:00Z in microseconds of the Unix epoch.
const POSTGRES_EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// The OIDs of `timestamptz` and `timestamptz[]`, the same in every database.
const TIMESTAMPTZ: Oid = Oid(1184);
const TIMESTAMPTZ_ARRAY: Oid = Oid(1185);

/// A `timestamptz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Time(pub Timestamp);

impl Type<Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ)
    }
}

impl PgHasArrayType for Time {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ_ARRAY)
    }
}

impl Encode<'_, Postgres> for Time {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Postgres>>::encode(
            self.0.as_microsecond() - POSTGRES_EPOCH_MICROSECONDS,
            buffer,
        )
    }
}

impl<'r> Decode<'r, Postgres> for Time {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let microseconds = <i64 as Decode<'_, Postgres>>::decode(value)?;
        let unix = microseconds
            .checked_add(POSTGRES_EPOCH_MICROSECONDS)
            .ok_or("infinite timestamp")?;
        Ok(Time(Timestamp::from_microsecond(unix)?))
    }
}
