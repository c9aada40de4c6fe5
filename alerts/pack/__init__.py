"""The alerts that are shipped, one file for what they are about; ``alerts/catalogue.py`` lists them."""
