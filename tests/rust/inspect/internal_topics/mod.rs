//! Records of internal topics.

mod texts;
