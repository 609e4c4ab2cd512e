//! The libtorch that this process runs with, and its use of CUDA.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{Error, Result};

/// The folder of the libtorch that this crate was linked against, as the build script reported it.
const BUILT_WITH: Option<&str> = option_env!("GFN_LIBTORCH_LIB");

const REINST &str = "run `make setup` and build again; if LIBTORCH, LIBTORCH_USE_PYTORCH or LD_LIBRARY_PATH is \
                         exported, it must name a PyTorch 2.13";

/// The libtorch that this process runs with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Libtorch {
    /// The folder that its libraries were loaded from.
    pub folder: PathBuf,
    /// The folder of the libtorch that this crate was linked against, if the build script reported it.
    pub built_with: Option<PathBuf>,
    /// The version stated in the files beside the libraries, such as `2.13.0+cu130`.
    pub version: Option<String>,
}

impl Libtorch {
    /// The series that the pinned tch is made for; series aren't compatible with each other.
    pub const SERIES: &'static str = "2.13";

    /// Finds the libtorch of this process.
    ///
    /// # Errors
    /// [`Error::File`] if libtorch is neither loaded nor in the folder of build time.
    pub fn loaded() -> Result<Self> {
        // Without a call, the linker might have dropped libtorch itself.
        let _ = tch::get_num_threads();
        let built_with = BUILT_WITH.map(PathBuf::from);
        let folder = mapped("libtorch_cpu.so").or_else(|| built_with.clone().filter(|lib| lib.is_dir()));
        let Some(folder) = folder else {
            return Err(Error::file(
                built_with.unwrap_or_else(|| PathBuf::from("libtorch_cpu.so")),
                "no libtorch is loaded, and there is none where it was at build time",
                REINSTALL,
            ));
        };
        let version = version_beside(&folder);
        Ok(Self { folder, built_with, version })
    }

    /// Checks that the library loaded is the one that the binary was built with, and of the right series.
    ///
    /// # Errors
    /// [`Error::File`] with the difference. A binary and a libtorch of different versions crash or compute nonsense.
    pub fn check(&self) -> Result<()> {
        let refuse = |problem| Err(Error::file(self.folder.clone(), problem, REINSTALL));
        let Some(version) = &self.version else {
            return refuse("no file states the version of this libtorch".into());
        };
        if !of_series(version, Self::SERIES) {
            return refuse(format!("this is libtorch {version}, tch 0.26 needs {}", Self::SERIES));
        }
        let Some(built) = &self.built_with else {
            return Ok(());
        };
        let same = matches!((fs::canonicalize(built), fs::canonicalize(&self.folder)), (Ok(a), Ok(b)) if a == b);
        match version_beside(built) {
            Some(other) if !same && other != *version => refuse(format!(
                "this is libtorch {version}, but the binary was built with {other} in {}",
                built.display()
            )),
            _ => Ok(()),
        }
    }
}

/// The use that can be made of CUDA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cuda {
    /// Yes, with this many GPUs.
    Visible {
        /// The number of GPUs.
        devices: usize,
    },
    /// No.
    Absent {
        /// Why not.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
}

/// The use that can be made of CUDA, and why none. The first call loads libtorch's CUDA part; the answer is kept.
///
/// Nothing in a binary refers to `libtorch_cuda`, so the linker drops it and CUDA seems absent on any machine. It is
/// therefore loaded here, from the folder of the running libtorch, before libtorch is asked.
#[must_use]
pub fn cuda() -> &'static Cuda {
    static FOUND: OnceLock<Cuda> = OnceLock::new();
    FOUND.get_or_init(|| match load_cuda() {
        Err((reason, remedy)) => Cuda::Absent { reason, remedy },
        Ok(()) if tch::Cuda::is_available() => Cuda::Visible {
            devices: usize::try_from(tch::Cuda::device_count()).unwrap_or_default(),
        },
        Ok(()) if !Path::new("/dev/nvidiactl").exists() => Cuda::Absent {
            reason: "libtorch's CUDA part is loaded, but there is no NVIDIA driver (/dev/nvidiactl is missing)".into(),
            remedy: "install NVIDIA's driver (in a container: start it with the GPUs), or use --device cpu",
        },
        Ok(()) => Cuda::Absent {
            reason: "libtorch's CUDA part is loaded and there is an NVIDIA driver, but no GPU is visible".into(),
            remedy: "update a driver that is older than libtorch's CUDA, check CUDA_VISIBLE_DEVICES, or use --device cpu",
        },
    })
}

#[cfg(target_os = "linux")]
fn load_cuda() -> std::result::Result<(), (String, &'static str)> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

    let folder = Libtorch::loaded().map_err(|error| (error.to_string(), REINSTALL))?.folder;
    let path = folder.join("libtorch_cuda.so");
    if !path.is_file() {
        return Err((
            format!("the libtorch in {} is one without CUDA (no libtorch_cuda.so)", folder.display()),
            "install a PyTorch 2.13 for CUDA, export LIBTORCH_USE_PYTORCH=1 and build again, or use --device cpu",
        ));
    }
    #[allow(unsafe_code, reason = "a library can be loaded in no other way")]
    // SAFETY: this is libtorch's own library, of the folder that the running libtorch came from; its initialisers
    // register the CUDA kernels and are meant to run at any time before the first use of CUDA.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) };
    match library {
        Ok(library) => {
            // Registered kernels point into the library, so it must stay loaded until the process ends.
            std::mem::forget(library);
            Ok(())
        }
        Err(error) => Err((
            format!("libtorch's CUDA part can't be loaded: {}", innermost(&error)),
            "the libtorch that `make setup` fetches comes without NVIDIA's own libraries: `pip install torch==2.13.0`, \
             export LIBTORCH_USE_PYTORCH=1 and build again, or use --device cpu",
        )),
    }
}

#[cfg(not(target_os = "linux"))]
fn load_cuda() -> std::result::Result<(), (String, &'static str)> {
    // On other systems the linker keeps the library.
    Ok(())
}

/// The innermost error of a chain: the loader's own message, which names the missing library.
#[cfg(target_os = "linux")]
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The folder of a library that is mapped into this process.
fn mapped(library: &str) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| folder_of(line, library))
}

/// The folder of `library`, if this line of `/proc/self/maps` is about it.
fn folder_of(line: &str, library: &str) -> Option<PathBuf> {
    // The fields before the path contain no slash, and a path may contain spaces.
    let path = Path::new(&line[line.find('/')?..]);
    (path.file_name()? == library).then(|| path.parent().map(Path::to_path_buf))?
}

fn of_series(version: &str, series: &str) -> bool {
    version.strip_prefix(series).is_some_and(|rest| rest.starts_with('.'))
}

/// The version of the libtorch with this library folder, from whichever of its files states it.
fn version_beside(lib: &Path) -> Option<String> {
    // The library folder may be a link into the installation.
    let lib = fs::canonicalize(lib).ok()?;
    let home = lib.parent()?;
    let read = |file: &str| fs::read_to_string(home.join(file)).ok();
    let stated = read("build-version").map(|version| version.trim().to_owned());
    stated.or_else(|| read("version.py").as_deref().and_then(python_version))
}

/// The version that PyTorch's `version.py` states: `__version__ = '2.13.0+cu130'`.
fn python_version(text: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.strip_prefix("__version__ = "))
        .map(|version| version.trim_matches(['\'', '"']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_libtorch_is_found_and_fits() {
        let libtorch = Libtorch::loaded().unwrap();
        assert!(libtorch.folder.is_dir());
        assert!(libtorch.version.as_deref().unwrap().starts_with("2.13."), "{libtorch:?}");
        libtorch.check().unwrap();
    }

    #[test]
    fn another_series_is_refused() {
        let mut libtorch = Libtorch::loaded().unwrap();
        for version in [Some("2.11.0"), Some("2.130.0"), Some("2.1"), None] {
            libtorch.version = version.map(str::to_owned);
            let error = libtorch.check().unwrap_err().to_string();
            assert!(error.contains("make setup"), "{error}");
        }
    }

    #[test]
    fn another_version_than_at_build_time_is_refused() {
        let built = std::env::temp_dir().join(format!("gfn-libtorch-{}", std::process::id()));
        fs::create_dir_all(built.join("lib")).unwrap();
        fs::write(built.join("build-version"), "2.13.7\n").unwrap();
        let mut libtorch = Libtorch::loaded().unwrap();
        libtorch.built_with = Some(built.join("lib"));
        let refused = libtorch.check();
        fs::remove_dir_all(&built).unwrap();
        assert!(refused.unwrap_err().to_string().contains("built with 2.13.7"));
    }

    #[test]
    fn the_lines_of_maps_are_read() {
        let line = "7f0000000000-7f0000001000 r-xp 00000000 fd:00 42    /a folder/lib/libtorch_cpu.so";
        assert_eq!(folder_of(line, "libtorch_cpu.so"), Some(PathBuf::from("/a folder/lib")));
        assert_eq!(folder_of(line, "libtorch_cuda.so"), None);
        assert_eq!(folder_of("7f00-7f01 rw-p 0 00:00 0 [heap]", "libtorch_cpu.so"), None);
    }

    #[test]
    fn the_version_of_a_python_file_is_read() {
        assert_eq!(python_version("x\n__version__ = '2.13.0+cu130'\n").as_deref(), Some("2.13.0+cu130"));
    }
}
