// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that an application keeps with a session, one of each type.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The application's values of a session, by their types. A clone shares the values.
///
/// ```
/// # fn serve(request: smt::Request) -> Result<(), smt::Error> {
/// struct Calls(std::sync::atomic::AtomicU32);
///
/// let calls = request.peer().data().get_or_insert_with(|| Calls(0.into()));
/// let number = calls.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
/// request.reply(format!("your call number {number}"))
/// # }
/// ```
#[derive(Clone, Default)]
pub struct SessionData(Arc<Mutex<Vec<Value>>>);

struct Value {
    of: TypeId,
    value: Arc<dyn Any + Send + Sync>,
}

impl SessionData {
    /// Returns the value of this type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        find(&self.lock())
    }

    /// Returns the value of this type, which `make` makes if there is none. The other values cannot
    /// be used meanwhile.
    pub fn get_or_insert_with<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.lock();
        find(&values).unwrap_or_else(|| {
            let value = Arc::new(make());
            values.push(Value::of(Arc::clone(&value)));
            value
        })
    }

    /// Sets the value of this type. Returns the one that it replaces.
    pub fn insert<T: Any + Send + Sync>(&self, value: T) -> Option<Arc<T>> {
        let mut values = self.lock();
        let before = take(&mut values);
        values.push(Value::of(Arc::new(value)));
        before
    }

    /// Takes the value of this type out.
    pub fn remove<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Value {
    fn of<T: Any + Send + Sync>(value: Arc<T>) -> Self {
        Self { of: TypeId::of::<T>(), value }
    }
}

fn find<T: Any + Send + Sync>(values: &[Value]) -> Option<Arc<T>> {
    let value = values.iter().find(|value| value.of == TypeId::of::<T>())?;
    Arc::clone(&value.value).downcast().ok()
}

fn take<T: Any + Send + Sync>(values: &mut Vec<Value>) -> Option<Arc<T>> {
    let at = values.iter().position(|value| value.of == TypeId::of::<T>())?;
    values.swap_remove(at).value.downcast().ok()
}

/// Values are the application's, and may be secret.
impl std::fmt::Debug for SessionData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.lock().len();
        f.debug_struct("SessionData").field("values", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_of_each_type() {
        let data = SessionData::default();
        assert_eq!(data.get::<u32>(), None);
        assert_eq!(data.insert(7_u32), None);
        assert_eq!(data.insert("user".to_owned()), None);
        assert_eq!(data.insert(8_u32).as_deref(), Some(&7));
        assert_eq!(data.get::<u32>().as_deref(), Some(&8));
        assert_eq!(data.remove::<String>().unwrap().as_str(), "user");
        assert_eq!(data.get::<String>(), None);
    }

    #[test]
    fn a_value_is_made_once_and_shared_by_clones() {
        let data = SessionData::default();
        let first = data.get_or_insert_with(|| 1_u64);
        let again = data.clone().get_or_insert_with(|| 2_u64);
        assert!(Arc::ptr_eq(&first, &again));
    }
}
