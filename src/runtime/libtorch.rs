//! Access to CUDA in the libtorch of this process.

use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::sync::OnceLock;

/// The reason why CUDA can't be used, and the remedy.
pub(super) type Refusal = (String, &'static str);

/// Returns the number of GPUs that can be used; an error if CUDA can't be used. The first call loads
/// libtorch's CUDA library; later calls return the result of the first.
///
/// Nothing in a binary refers to `libtorch_cuda`, so the linker drops it, and libtorch would report on any
/// machine that there is no CUDA. The library is therefore loaded here, from the folder of the running
/// libtorch, before libtorch is asked for GPUs.
pub(super) fn n_gpus() -> &'static Result<usize, Refusal> {
    static FOUND: OnceLock<Result<usize, Refusal>> = OnceLock::new();
    FOUND.get_or_init(|| {
        load_cuda()?;
        if tch::Cuda::is_available() {
            return Ok(usize::try_from(tch::Cuda::device_count()).unwrap_or_default());
        }
        if !Path::new("/dev/nvidiactl").exists() {
            return Err((
                "libtorch's CUDA part is loaded, but there is no NVIDIA driver (/dev/nvidiactl is missing)"
                    .into(),
                "install NVIDIA's driver (in a container: start it with the GPUs), or use --device cpu",
            ));
        }
        Err((
            "libtorch's CUDA part is loaded and there is an NVIDIA driver, but no GPU is visible".into(),
            "update a driver that is older than libtorch's CUDA, check CUDA_VISIBLE_DEVICES, or use --device \
             cpu",
        ))
    })
}

#[cfg(target_os = "linux")]
fn load_cuda() -> Result<(), Refusal> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

    // This call makes the program refer to libtorch, so that the linker doesn't drop libtorch itself.
    let _ = tch::get_num_threads();
    // The build script passes on the folder of the libtorch with which this crate was linked.
    let built_with = option_env!("GFN_LIBTORCH_LIB").map(PathBuf::from);
    let Some(folder) = mapped("libtorch_cpu.so").or_else(|| built_with.filter(|lib| lib.is_dir())) else {
        return Err((
            "no libtorch is loaded, and the libtorch of the build is no longer in its folder".into(),
            "run `make setup` and build again; if LIBTORCH, LIBTORCH_USE_PYTORCH or LD_LIBRARY_PATH is \
             exported, it must refer to a PyTorch 2.13",
        ));
    };
    let path = folder.join("libtorch_cuda.so");
    if !path.is_file() {
        return Err((
            format!("the libtorch in {} is one without CUDA (no libtorch_cuda.so)", folder.display()),
            "install a PyTorch 2.13 for CUDA, export LIBTORCH_USE_PYTORCH=1 and build again, or use --device \
             cpu",
        ));
    }
    #[allow(unsafe_code, reason = "a library can be loaded in no other way")]
    // SAFETY: this is libtorch's own library, of the folder that the running libtorch came from; its
    // initialisers register the CUDA kernels and are meant to run at any time before the first use of CUDA.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) };
    match library {
        Ok(library) => {
            // Kernels that were registered point into the library, so it must stay loaded until the process
            // ends.
            std::mem::forget(library);
            Ok(())
        }
        Err(error) => Err((
            format!("libtorch's CUDA part can't be loaded: {}", innermost(&error)),
            "the libtorch that `make setup` fetches comes without NVIDIA's own libraries: `pip install \
             torch==2.13.0`, export LIBTORCH_USE_PYTORCH=1 and build again, or use --device cpu",
        )),
    }
}

#[cfg(not(target_os = "linux"))]
fn load_cuda() -> Result<(), Refusal> {
    // Nothing needs to be loaded, because on systems other than Linux the linker keeps libtorch's CUDA
    // library.
    Ok(())
}

/// Returns the message of the innermost error of a chain. The innermost error is the loader's message, which
/// names the missing library.
#[cfg(target_os = "linux")]
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns the folder of a library that is mapped into this process; `None` if it isn't mapped.
#[cfg(target_os = "linux")]
fn mapped(library: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| folder_of(line, library))
}

/// Returns the folder of `library` if this line of `/proc/self/maps` maps it.
#[cfg(target_os = "linux")]
fn folder_of(line: &str, library: &str) -> Option<PathBuf> {
    // The path begins at the first slash, because the fields before it contain no slash. The path itself may
    // contain spaces.
    let path = Path::new(&line[line.find('/')?..]);
    (path.file_name()? == library).then(|| path.parent().map(Path::to_path_buf))?
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_running_libtorch_is_found() {
        let _ = tch::get_num_threads();
        assert!(mapped("libtorch_cpu.so").unwrap().is_dir());
    }

    #[test]
    fn the_lines_of_maps_are_read() {
        let line = "7f0000000000-7f0000001000 r-xp 00000000 fd:00 42    /a folder/lib/libtorch_cpu.so";
        assert_eq!(folder_of(line, "libtorch_cpu.so"), Some(PathBuf::from("/a folder/lib")));
        assert_eq!(folder_of(line, "libtorch_cuda.so"), None);
        assert_eq!(folder_of("7f00-7f01 rw-p 0 00:00 0 [heap]", "libtorch_cpu.so"), None);
    }
}
