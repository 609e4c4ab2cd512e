//! Places of a file where something can be changed.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    BinOp, Block, Expr, ExprBinary, ExprClosure, ExprUnary, ImplItemFn, ItemConst, ItemFn, ItemMod, ItemStatic,
    Signature, TraitItemFn, UnOp,
};

use crate::values;

/// One change.
pub(crate) struct Mutant {
    /// Where it is, in bytes.
    pub(crate) at: usize,
    pub(crate) what: String,
    /// The text of the whole site with the change.
    pub(crate) text: String,
}

/// A place whose text is replaced, or a function's beginning.
pub(crate) struct Site {
    pub(crate) range: Range<usize>,
    pub(crate) function: String,
    pub(crate) is_body: bool,
    pub(crate) mutants: Vec<Mutant>,
}

/// The sites of a text: functions, and expressions that no other site holds. Tests and constants have none.
pub(crate) fn of(text: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, function: String::new(), sites: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.sites)
}

struct Finder<'a> {
    text: &'a str,
    function: String,
    sites: Vec<Site>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"));
        is_cfg || attribute.path().is_ident("test")
    })
}

impl Finder<'_> {
    fn function(&mut self, signature: &Signature, block: &Block, visit: impl FnOnce(&mut Self)) {
        if signature.constness.is_some() {
            return;
        }
        let outer = std::mem::replace(&mut self.function, signature.ident.to_string());
        let at = block.brace_token.span.open().byte_range().end;
        let values = values::of_return(&signature.output);
        let has_one = block.stmts.len() == 1;
        let own = self.text[at..block.brace_token.span.close().byte_range().start].trim();
        let differs = |value: &String| !(block.stmts.is_empty() || has_one && own == value);
        let mutants: Vec<Mutant> = values
            .into_iter()
            .filter(differs)
            .map(|value| Mutant { at, what: format!("return {value}"), text: format!("return {value}") })
            .collect();
        if !mutants.is_empty() {
            self.sites.push(Site { range: at..at, function: self.function.clone(), is_body: true, mutants });
        }
        visit(self);
        self.function = outer;
    }

    /// A site of all operators within an expression.
    fn expression(&mut self, expression: &Expr) -> bool {
        let range = expression.span().byte_range();
        let mut changes = Changes { changes: Vec::new(), has_let: false };
        changes.visit_expr(expression);
        if changes.changes.is_empty() || changes.has_let {
            return false;
        }
        let of = |Change { range: at, to }: Change| {
            let (before, after) = (&self.text[range.start..at.start], &self.text[at.end..range.end]);
            let what = format!("{:?} becomes {to:?}", &self.text[at.clone()]);
            Mutant { at: at.start, what, text: format!("{before}{to}{after}") }
        };
        let mutants = changes.changes.into_iter().map(of).collect();
        self.sites.push(Site { range, function: self.function.clone(), is_body: false, mutants });
        true
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'ast ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    // A length is a constant.
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block, |finder| visit::visit_item_fn(finder, item));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block, |finder| visit::visit_impl_item_fn(finder, item));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block, |finder| visit::visit_trait_item_fn(finder, item));
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let is_operation =
            matches!(expression, Expr::Binary(_) | Expr::Unary(ExprUnary { op: UnOp::Not(_) | UnOp::Neg(_), .. }));
        if !(is_operation && self.expression(expression)) {
            visit::visit_expr(self, expression);
        }
    }
}

/// A part of an expression, and what stands in its place.
struct Change {
    range: Range<usize>,
    to: &'static str,
}

/// The changes within an expression.
struct Changes {
    changes: Vec<Change>,
    has_let: bool,
}

/// The operators that may stand in place of one.
fn others(of: &BinOp) -> &'static [&'static str] {
    match of {
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) | BinOp::Rem(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Le(_) => &[">"],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Ge(_) => &["<"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        BinOp::BitAndAssign(_) => &["|=", "^="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Changes {
    fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
        self.has_let = true;
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let range = binary.op.span().byte_range();
        self.changes.extend(others(&binary.op).iter().map(|&to| Change { range: range.clone(), to }));
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        if matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)) {
            self.changes.push(Change { range: unary.op.span().byte_range(), to: "" });
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        let outer = std::mem::replace(&mut self.has_let, false);
        visit::visit_expr_closure(self, closure);
        self.has_let = outer;
    }

    fn visit_expr_if(&mut self, item: &'ast syn::ExprIf) {
        // A `let` of a condition stays within it.
        let outer = std::mem::replace(&mut self.has_let, false);
        visit::visit_expr_if(self, item);
        self.has_let = outer;
    }

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
}
