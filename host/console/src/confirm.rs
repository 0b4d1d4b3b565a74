//! A form that shows the effects of an action before its confirmation. Its template is `templates/confirm.html`.

use crate::api::Trouble;
use crate::posted::Fields;

/// The form of one action of definers and operators.
pub(crate) struct Confirm {
    pub(crate) name: String,
    /// The address to which it is sent, and the page to which a reader returns without sending it.
    pub(crate) address: String,
    pub(crate) back: String,
    /// Its hidden fields.
    pub(crate) hidden: Vec<(&'static str, String)>,
    pub(crate) effects: Vec<String>,
    /// The reason that was written; none if the action takes none.
    pub(crate) reason: Option<String>,
    /// Whether the refusal can be overruled.
    pub(crate) may_force: bool,
    pub(crate) refusal: Option<Refused>,
    /// Whether it cannot be taken back.
    pub(crate) is_final: bool,
}

/// Why the API refused.
pub(crate) struct Refused {
    pub(crate) detail: String,
    pub(crate) errors: Vec<String>,
}

impl From<&Trouble> for Refused {
    fn from(trouble: &Trouble) -> Refused {
        let errors = trouble.errors.iter().map(|error| error.detail.clone());
        // The API says a single error in its detail, too.
        let errors = errors.filter(|error| !trouble.detail.ends_with(error));
        Refused {
            detail: trouble.detail.clone(),
            errors: errors.collect(),
        }
    }
}

impl Confirm {
    pub(crate) fn new(name: String, address: String, back: String) -> Confirm {
        Confirm {
            name,
            address,
            back,
            hidden: Vec::new(),
            effects: Vec::new(),
            reason: None,
            may_force: false,
            refusal: None,
            is_final: false,
        }
    }

    /// Shows why it was refused, and keeps the typed text.
    pub(crate) fn refuse(mut self, trouble: &Trouble, filled: &Fields) -> Confirm {
        self.reason = self.reason.map(|_| filled.get("reason").to_owned());
        let mut errors = trouble.errors.iter();
        self.may_force = errors.any(|error| error.pointer == "/force");
        self.refusal = Some(Refused::from(trouble));
        self
    }
}
