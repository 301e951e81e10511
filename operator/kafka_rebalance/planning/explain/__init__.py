"""Why a plan moves what it moves."""
