//! Writes lz4 frames as Kafka does: independent blocks of 64 KiB, no size, no checksum of the content.

const FLAGS_AND_BLOCK_SIZE: [u8; 2] = [0x60, 0x40];
const BLOCK_BYTES: usize = 64 << 10;

/// A frame with the correct header checksum (v1, v2), or with the wrong one that Kafka writes in v0 messages.
pub fn frame(bytes: &[u8], wrong_header_checksum: bool) -> Vec<u8> {
    let mut out = 0x184d_2204_u32.to_le_bytes().to_vec();
    out.extend(FLAGS_AND_BLOCK_SIZE);
    let hashed = if wrong_header_checksum { &out[..] } else { &out[4..] };
    let checksum = (twox_hash::XxHash32::oneshot(0, hashed) >> 8) as u8;
    out.push(checksum);
    for block in bytes.chunks(BLOCK_BYTES) {
        let packed = lz4_flex::block::compress(block);
        if packed.len() < block.len() {
            out.extend((packed.len() as u32).to_le_bytes());
            out.extend(packed);
        } else {
            out.extend((block.len() as u32 | 1 << 31).to_le_bytes());
            out.extend(block);
        }
    }
    out.extend([0; 4]);
    out
}
