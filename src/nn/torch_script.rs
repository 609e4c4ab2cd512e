use std::path::Path;

use tch::{CModule, Device};

use crate::{Error, Result};

/// Loads a TorchScript file to a device, in evaluation mode: dropout is off, and batch norm uses its running
/// statistics. The mode in which the file was saved has no effect.
///
/// ```
/// use gfn::nn::load_torch_script;
/// let missing = load_torch_script("no_such_file.pt".as_ref(), tch::Device::Cpu);
/// assert!(matches!(missing, Err(gfn::Error::File { .. })));
/// ```
///
/// # Errors
/// [`Error::File`] for a file that doesn't exist or isn't TorchScript.
pub fn load_torch_script(path: &Path, device: Device) -> Result<CModule> {
    let script = if path.is_file() {
        // Only the first line of the message is kept, because libtorch lists its call stack after that line.
        CModule::load_on_device(path, device)
            .and_then(|mut script| script.f_set_eval().map(|()| script))
            .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
    } else {
        Err("there is no such file".to_owned())
    };
    script.map_err(|problem| {
        Error::file(path, problem, "give the path of a TorchScript file (`torch.jit.save`)")
    })
}
