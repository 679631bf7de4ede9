//! Reading of numbers, and the two checksums, computed bit by bit.

/// A slice that is read from its start.
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (head, tail) =
            self.0.split_at_checked(n).ok_or_else(|| format!("expected {n} bytes, {} left", self.0.len()))?;
        self.0 = tail;
        Ok(head)
    }

    pub fn i8(&mut self) -> Result<i8, String> {
        Ok(i8::from_be_bytes(self.take(1)?.try_into().unwrap()))
    }

    pub fn i16(&mut self) -> Result<i16, String> {
        Ok(i16::from_be_bytes(self.take(2)?.try_into().unwrap()))
    }

    pub fn i32(&mut self) -> Result<i32, String> {
        Ok(i32::from_be_bytes(self.take(4)?.try_into().unwrap()))
    }

    pub fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into().unwrap()))
    }

    pub fn i64(&mut self) -> Result<i64, String> {
        Ok(i64::from_be_bytes(self.take(8)?.try_into().unwrap()))
    }

    pub fn u32_le(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().unwrap()))
    }

    pub fn varint(&mut self) -> Result<i32, String> {
        let (n, used) = varint(self.0)?;
        self.take(used)?;
        Ok(n)
    }

    pub fn varlong(&mut self) -> Result<i64, String> {
        let (n, used) = varlong(self.0)?;
        self.take(used)?;
        Ok(n)
    }

    /// Bytes after their length as an i32; −1 is null.
    pub fn nullable(&mut self) -> Result<Option<Vec<u8>>, String> {
        let n = self.i32()?;
        self.of_length(n)
    }

    /// Bytes after their length as a varint; −1 is null.
    pub fn nullable_varint(&mut self) -> Result<Option<Vec<u8>>, String> {
        let n = self.varint()?;
        self.of_length(n)
    }

    fn of_length(&mut self, n: i32) -> Result<Option<Vec<u8>>, String> {
        match n {
            -1 => Ok(None),
            0.. => Ok(Some(self.take(n as usize)?.to_vec())),
            _ => Err(format!("length {n}")),
        }
    }
}

/// A zigzag varint of at most 5 bytes, and its size.
pub fn varint(bytes: &[u8]) -> Result<(i32, usize), String> {
    let (raw, used) = unsigned(bytes, 5)?;
    let raw = (raw & 0xffff_ffff) as u32; // Kafka discards the bits above 32
    Ok(((raw >> 1) as i32 ^ -((raw & 1) as i32), used))
}

/// A zigzag varlong of at most 10 bytes, and its size.
pub fn varlong(bytes: &[u8]) -> Result<(i64, usize), String> {
    let (raw, used) = unsigned(bytes, 10)?;
    Ok(((raw >> 1) as i64 ^ -((raw & 1) as i64), used))
}

fn unsigned(bytes: &[u8], max_bytes: usize) -> Result<(u64, usize), String> {
    let mut n = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(max_bytes) {
        n |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Ok((n, i + 1));
        }
    }
    Err("a varint that does not end".to_owned())
}

/// CRC-32C (Castagnoli), of v2 batches.
pub fn crc32c(bytes: &[u8]) -> u32 {
    reflected_crc(0x82f6_3b78, bytes)
}

/// CRC-32 (IEEE), of v0 and v1 messages.
pub fn crc32(bytes: &[u8]) -> u32 {
    reflected_crc(0xedb8_8320, bytes)
}

fn reflected_crc(polynomial: u32, bytes: &[u8]) -> u32 {
    let mut table = [0u32; 256];
    for (i, slot) in table.iter_mut().enumerate() {
        *slot = (0..8).fold(i as u32, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ polynomial } else { crc >> 1 });
    }
    !bytes.iter().fold(!0u32, |crc, &byte| (crc >> 8) ^ table[((crc ^ u32::from(byte)) & 0xff) as usize])
}
