//! The boundary to Java: errors and panics become exceptions, warnings wait for Java's logger, and values are
//! converted.

use std::any::Any;
use std::cell::RefCell;

use jni::errors::{Error as JniError, ErrorPolicy};
use jni::objects::{JByteArray, JObjectArray, JString};
use jni::refs::IntoAuto;
use jni::sys::jlong;
use jni::{Env, JValue, jni_sig, jni_str};

use crate::plan::{PlanError, Warning};
use crate::types::OnWarning;

pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a function has no result.
#[derive(Debug)]
pub(super) enum Failure {
    Plan(PlanError),
    /// A function of the JVM failed; an exception may be pending.
    Jni(JniError),
    /// There is no object of this number.
    Closed(jlong),
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<JniError> for Failure {
    fn from(error: JniError) -> Self {
        Self::Jni(error)
    }
}

/// Throws a failure or a panic as a `CordwoodException`.
pub(super) struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'unowned: 'native, 'native> = ();

    fn on_error<'unowned: 'native, 'native>(
        env: &mut Env<'unowned>,
        (): &mut Self::Captures<'unowned, 'native>,
        failure: Failure,
    ) -> jni::errors::Result<T> {
        let error = match failure {
            Failure::Plan(error) => error,
            Failure::Jni(_) if env.exception_check() => return Ok(T::default()),
            Failure::Jni(error) => PlanError::internal(&error.to_string()),
            Failure::Closed(handle) => {
                PlanError::internal(&format!("no open object has the number {handle}"))
            }
        };
        throw(env, &error).map(|()| T::default())
    }

    fn on_panic<'unowned: 'native, 'native>(
        env: &mut Env<'unowned>,
        (): &mut Self::Captures<'unowned, 'native>,
        panic: Box<dyn Any + Send>,
    ) -> jni::errors::Result<T> {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        throw(env, &PlanError::internal(&format!("a defect of cordwood, please report it: {text}")))
            .map(|()| T::default())
    }
}

/// Throws an error as a `CordwoodException`, whose numbers are negative where they are unknown.
fn throw(env: &mut Env<'_>, error: &PlanError) -> jni::errors::Result<()> {
    let message = env.new_string(error.to_string())?;
    let code = env.new_string(error.code.name())?;
    let topic = match &error.topic {
        Some(topic) => env.new_string(topic)?,
        None => JString::default(),
    };
    let position = error.position.and_then(|position| position.try_into().ok());
    let class = env.find_class(jni_str!("io/cordwood/spark/CordwoodException"))?;
    let exception = env.new_object(
        class,
        jni_sig!("(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;IJJ)V"),
        &[
            JValue::Object(&message),
            JValue::Object(&code),
            JValue::Object(&topic),
            JValue::Int(error.partition.unwrap_or(-1)),
            JValue::Long(error.segment.unwrap_or(-1)),
            JValue::Long(position.unwrap_or(-1)),
        ],
    )?;
    let exception = env.cast_local::<jni::objects::JThrowable<'_>>(exception)?;
    match env.throw(exception) {
        // the exception that was just thrown
        Err(JniError::JavaException) => Ok(()),
        thrown => thrown,
    }
}

thread_local! {
    /// The warnings of this thread's calls that Java has not logged yet.
    static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a warning of the core for Java's logger.
pub(super) const KEEP_WARNING: OnWarning = OnWarning(|warning| keep(warning.to_owned()));

fn keep(warning: String) {
    WARNINGS.with_borrow_mut(|warnings| warnings.push(warning));
}

/// Keeps warnings for Java's logger.
pub(super) fn keep_warnings(warnings: Vec<Warning>) {
    for warning in warnings {
        keep(warning.text);
    }
}

/// The warnings of this thread since the last call.
pub(super) fn take_warnings() -> Vec<String> {
    WARNINGS.take()
}

/// The text of a string.
pub(super) fn text(env: &Env<'_>, string: &JString<'_>) -> Result<String> {
    Ok(string.try_to_string(env)?)
}

/// The texts of an array.
pub(super) fn texts<'local>(
    env: &mut Env<'local>,
    array: &JObjectArray<'local, JString<'local>>,
) -> Result<Vec<String>> {
    (0..array.len(env)?)
        .map(|index| {
            let element = array.get_element(env, index)?.auto();
            text(env, &element)
        })
        .collect()
}

/// An array of strings.
pub(super) fn strings<'local>(
    env: &mut Env<'local>,
    texts: &[String],
) -> Result<JObjectArray<'local, JString<'local>>> {
    let array = JObjectArray::<JString<'_>>::new(env, texts.len(), JString::null())?;
    for (index, text) in texts.iter().enumerate() {
        let string = env.new_string(text)?.auto();
        array.set_element(env, index, &string)?;
    }
    Ok(array)
}

/// An array of arrays of bytes.
pub(super) fn byte_arrays<'local>(
    env: &mut Env<'local>,
    values: &[Vec<u8>],
) -> Result<JObjectArray<'local, JByteArray<'local>>> {
    let array = JObjectArray::<JByteArray<'_>>::new(env, values.len(), JByteArray::null())?;
    for (index, value) in values.iter().enumerate() {
        let bytes = env.byte_array_from_slice(value)?.auto();
        array.set_element(env, index, &bytes)?;
    }
    Ok(array)
}

/// The error for a number that has another meaning than the caller assumed.
pub(super) fn wrong_argument(found: &str) -> Failure {
    Failure::Plan(PlanError::internal(found))
}
