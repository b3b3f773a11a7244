//! Frames: how the buffer goes out, and what goes around it.

use std::io::{self, Write};

use super::{FRAME_TARGET, Layout, Writer, misuse};

/// Frames smaller than this are written without a header.
const FRAME_MINIMUM: usize = 4;

impl<W: Write> Writer<W> {
    /// Between two opcodes: a full frame ends here.
    pub(super) fn boundary(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FRAME_TARGET { self.end_frame() } else { Ok(()) }
    }

    pub(super) fn end_frame(&mut self) -> io::Result<()> {
        let framed = matches!(self.layout, Layout::CPython(4..));
        let length = self.buffer.len();
        if framed && length >= FRAME_MINIMUM {
            let length = u64::try_from(length).map_err(io::Error::other)?;
            self.out.write_all(&[0x95])?;
            self.out.write_all(&length.to_le_bytes())?;
            self.written = self.written.saturating_add(9);
        }
        self.out.write_all(&self.buffer)?;
        self.written = self.written.saturating_add(u64::try_from(length).map_err(io::Error::other)?);
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn put_text(&mut self, value: &str) -> io::Result<()> {
        let bytes = value.as_bytes();
        let modern = matches!(self.layout, Layout::CPython(4..));
        // A text of a frame's size goes outside of frames, header and all.
        let bypass = modern && bytes.len() >= FRAME_TARGET;
        if bypass {
            self.end_frame()?;
        }
        match (u8::try_from(bytes.len()), u32::try_from(bytes.len())) {
            (Ok(length), _) if modern => self.buffer.extend_from_slice(&[0x8c, length]),
            (_, Ok(length)) => {
                self.buffer.push(b'X');
                self.buffer.extend_from_slice(&length.to_le_bytes());
            }
            _ => return Err(misuse("a text of 4 GiB")),
        }
        self.buffer.extend_from_slice(bytes);
        if bypass {
            self.out.write_all(&self.buffer)?;
            self.written =
                self.written.saturating_add(u64::try_from(self.buffer.len()).map_err(io::Error::other)?);
            self.buffer.clear();
        }
        Ok(())
    }
}
