//! A network's parameters as a roll-out reads them, packed once.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tch::Tensor;

/// Copies of layers for one roll-out, in which parameters stay as they are. Each is made when it is first asked for.
#[derive(Debug, Default)]
pub(in crate::nn) struct Packed(RefCell<HashMap<(usize, TypeId), Kept>>);

#[derive(Debug)]
struct Kept {
    packed: Rc<dyn Any>,
    /// Keeps the address from being given to another tensor.
    _of: Tensor,
}

impl Packed {
    /// The copy of this type that belongs to a parameter: of a layer to its weight.
    pub(in crate::nn) fn of<T: 'static>(&self, parameter: &Tensor, pack: impl FnOnce() -> T) -> Rc<T> {
        let at = (parameter.data_ptr() as usize, TypeId::of::<T>());
        let known = self.0.borrow().get(&at).map(|kept| Rc::clone(&kept.packed));
        if let Some(known) = known.and_then(|packed| packed.downcast().ok()) {
            return known;
        }
        let packed = Rc::new(pack());
        self.0.borrow_mut().insert(at, Kept { packed: packed.clone(), _of: parameter.shallow_clone() });
        packed
    }
}
