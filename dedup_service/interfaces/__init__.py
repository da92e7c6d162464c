"""Floor 2: what people and frameworks touch. A face knows its framework and leaves every step to the floors below."""
