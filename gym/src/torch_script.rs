//! TorchScript files, wherever one is taken.

use std::path::Path;

use gfn::{Error, Result};
use tch::{CModule, Device};

/// Loads a file, in evaluation mode: dropout is off and batch norm uses what it has learnt, in whichever mode it was saved.
///
/// # Errors
/// [`Error::File`] for one that isn't there or isn't TorchScript.
pub(crate) fn load(path: &Path, device: Device) -> Result<CModule> {
    let script = match path.is_file() {
        // Behind the first line libtorch lists its own calls.
        true => CModule::load_on_device(path, device)
            .and_then(|mut script| script.f_set_eval().map(|()| script))
            .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned()),
        false => Err("there is no such file".to_owned()),
    };
    script.map_err(|problem| Error::File {
        path: path.to_owned(),
        problem,
        remedy: "give the path of a TorchScript file (`torch.jit.save`)",
    })
}
