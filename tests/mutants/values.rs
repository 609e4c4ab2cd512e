//! Plain values of a type, as text.

use syn::{GenericArgument, PathArguments, ReturnType, Type};

/// Values that a function may give at once.
pub(crate) fn of_return(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".into()],
        ReturnType::Type(_, of) => of_type(of),
    }
}

fn of_type(of: &Type) -> Vec<String> {
    let texts = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let path = match of {
        Type::Tuple(tuple) if tuple.elems.is_empty() => return texts(&["()"]),
        Type::Path(path) => path,
        _ => return Vec::new(),
    };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let inner = |place: usize| match &last.arguments {
        PathArguments::AngleBracketed(given) => match given.args.iter().nth(place) {
            Some(GenericArgument::Type(inner)) => of_type(inner),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let around =
        |before: &str, after: &str| inner(0).iter().map(|value| format!("{before}{value}{after}")).collect::<Vec<_>>();
    match last.ident.to_string().as_str() {
        "bool" => texts(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "usize" => texts(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "isize" => texts(&["0", "1", "-1"]),
        "f32" | "f64" => texts(&["0.0", "1.0", "-1.0"]),
        "String" => texts(&["String::new()"]),
        "Option" => [texts(&["None"]), around("Some(", ")")].concat(),
        "Result" => around("Ok(", ")"),
        "Vec" => [texts(&["Vec::new()"]), around("vec![", "]")].concat(),
        "Self" => Vec::new(),
        _ => texts(&["Default::default()"]),
    }
}
